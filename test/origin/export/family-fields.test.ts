import { describe, expect, it } from 'vitest';
import { NEUTRAL_FIELDS } from '../../../origin/export/families/common-fields.ts';
import { describeFamily, FAMILIES } from '../../../origin/export/families/families.ts';
import { errorMessage } from '../../../shared/error-details.ts';
import { CASES } from './family-cases.ts';

type Fields = Readonly<Record<string, unknown>>;

const designOf = (config: Fields, tensors: Fields): unknown =>
  describeFamily(config, new Set(Object.keys(tensors))).design;

/** Another value of the same type; for null and objects, one that no family knows. */
function changed(value: unknown): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  if (Array.isArray(value) && value.length > 0) return value.map(changed);
  return 'changed';
}

const withText = CASES.map((one) => {
  const { text_config: text } = one.config;
  return typeof text === 'object' ? { ...one, config: text as Fields, fields: null } : one;
});

const neutralOf = (config: Fields): ReadonlySet<string> => {
  const family = FAMILIES.find(({ modelTypes }) => modelTypes.some((type) => type === config.model_type));
  return new Set([...NEUTRAL_FIELDS, ...(family?.ignored ?? [])]);
};

describe('the fields of config.json', () => {
  it.each(CASES.map((one) => [one.name, one] as const))(
    'of %s mean the same in the form that transformers 5 writes',
    (_, { config, fields, tensors }) => {
      if (fields === null) return;
      expect(designOf(fields, tensors)).toEqual(designOf(config, tensors));
    },
  );

  it.each(withText.map((one) => [one.name, one] as const))(
    'of %s change the design or are refused by name, unless they are listed as neutral',
    (_, { config, fields, tensors }) => {
      const all = fields ?? config;
      const design = JSON.stringify(designOf(all, tensors));
      const neutral = neutralOf(all);
      const without = Object.keys(all).filter((name) => {
        if (neutral.has(name)) return false;
        try {
          return JSON.stringify(designOf({ ...all, [name]: changed(all[name]) }, tensors)) === design;
        } catch (error) {
          return !errorMessage(error).includes(name);
        }
      });
      expect(without).toEqual([]);
    },
  );

  it.each(withText.map((one) => [one.name, one] as const))(
    'of %s are refused by name if they are unknown',
    (_, { config, tensors }) => {
      expect(() => designOf({ ...config, expert_dropout_gate: 0.5 }, tensors)).toThrow(/expert_dropout_gate/);
    },
  );

  it('name an unknown family and the known ones', () => {
    expect(() => designOf({ model_type: 'mamba2' }, {})).toThrow(
      /model_type is "mamba2".*gpt_neox.*qwen3_moe/,
    );
  });
});
