import { describe, expect, it } from 'vitest';
import { attentionsOf } from '../../../origin/export/design/decoder-design.ts';
import { describeFamily } from '../../../origin/export/families/families.ts';
import { knownValues } from '../../../origin/export/families/reading/known-fields.ts';
import { ModelError } from '../../../origin/model/config/model-json.ts';
import { CASES, type FamilyCase } from './family-cases.ts';

/** Fields of config.json that a family's code in transformers does not read. */

type Fields = Readonly<Record<string, unknown>>;

const caseOf = (name: string) => CASES.find((one) => one.name === name)!;
const textOf = ({ config }: FamilyCase): Fields => (config.text_config as Fields | undefined) ?? config;
const designOf = (config: Fields) => describeFamily(config, new Set()).design;

/** Families that rotate a share of each head. */
const PARTIAL =
  /^(phi|phi3|stablelm|nemotron|glm|glm4|glm4_moe|mistral3-latent|qwen3_next|recurrent_gemma)(-|$)/;

const FAMILIES = CASES.filter(({ name }) => !name.includes('-')).map(
  (one) => [one.name, textOf(one)] as const,
);

const ROTATED = CASES.map((one) => [one.name, textOf(one)] as const).filter(
  ([name, config]) =>
    !PARTIAL.test(name) && attentionsOf(designOf(config)).some(({ rotary }) => rotary !== null),
);

const OTHERS: readonly (readonly [name: string, fields: Fields])[] = [
  ...[
    'gpt2',
    'gpt2-layer-scale',
    'gpt_neox',
    'gpt_bigcode-multi-head',
    'gpt_neo',
    'gptj',
    'opt',
    'bloom',
    'mpt',
  ].map((name) => [name, { num_key_value_heads: 1 }] as const),
  ['gpt_bigcode', { num_key_value_heads: 4 }],
  ['falcon', { num_key_value_heads: 4 }],
  ['gpt_neo', { head_dim: 32 }],
  ['gptj', { rope_theta: 500_000 }],
  ['gptj', { rope_scaling: { type: 'linear', factor: 2 } }],
  ['gptj', { partial_rotary_factor: 0.25 }],
  ['gpt_neox', { rope_theta: 500_000 }],
  ['gpt_neox', { partial_rotary_factor: 0.5 }],
  ['qwen2', { attention_bias: false }],
  ['mellum', { rope_theta: 10_000 }],
];

/** Fields that are read, without effect: several names of activations, windows of no size, … */
const OTHERWISE =
  /use_sliding_window|act(ivation)?(_function)?$|^hunyuan_v1_(dense|moe)\.rope_theta|^falcon-new\.parallel_attn/;

describe('a field that the family does not read', () => {
  it.each(OTHERS)('is refused in %s if it says something else: %j', (name, fields: Fields) => {
    const [field] = Object.keys(fields);
    expect(() => designOf({ ...caseOf(name).config, ...fields })).toThrow(
      new RegExp(`\\b${field} .*(supported|unknown)`),
    );
  });

  it.each([
    ['gpt_neo', { head_dim: 64, num_key_value_heads: 2 }],
    ['gptj', { head_dim: 64, num_key_value_heads: 2, rope_theta: 10_000, partial_rotary_factor: 0.5 }],
    ['opt', { head_dim: 64, num_key_value_heads: 2 }],
    [
      'bloom',
      { head_dim: 64, num_key_value_heads: 3, hidden_size: 192, n_embed: 192, num_attention_heads: 3 },
    ],
    ['mpt', { head_dim: 64, num_key_value_heads: 5, hidden_size: 320 }],
    ['falcon', { head_dim: 64, num_key_value_heads: 1, num_kv_heads: 4 }],
    ['gpt_neox', { rope_theta: 10_000, partial_rotary_factor: 0.25, head_dim: 64 }],
    ['gpt2', { hidden_size: 192, num_attention_heads: 3, max_position_embeddings: 256 }],
    ['mixtral', { num_experts: 5 }],
    ['bamba', { attn_rotary_emb: 12, partial_rotary_factor: 0.5 }],
  ])('may say the same in %s: %j', (name, fields: Fields) => {
    const { config } = caseOf(name);
    expect(designOf({ ...config, ...fields })).toEqual(designOf(config));
  });

  it.each(ROTATED)('may name the share of a head that is rotated in %s if it is all of it', (_, config) => {
    const design = designOf(config);
    const { latent, headSize } = attentionsOf(design)[0]!;
    const { frequencies } = attentionsOf(design).flatMap(({ rotary }) => rotary ?? [])[0]!;
    const share = (2 * frequencies.length) / (latent?.sharedSize ?? headSize);
    expect(designOf({ ...config, partial_rotary_factor: share })).toEqual(design);
    expect(() => designOf({ ...config, partial_rotary_factor: share / 2 })).toThrow(/partial_rotary_factor/);
  });

  it.each(FAMILIES)('may say the same in %s whatever its name, and nothing else', (name, config) => {
    const design = designOf(config);
    const text = JSON.stringify(design);
    const known = Object.entries(knownValues(design)).filter(
      ([field]) => !Object.hasOwn(config, field) && !OTHERWISE.test(`${name}.${field}`),
    );
    for (const [field, values] of known) {
      for (const value of values)
        expect(JSON.stringify(designOf({ ...config, [field]: value })), field).toBe(text);
      const other = typeof values[0] === 'boolean' ? !values[0] : 0.125;
      expect(isBelieved({ ...config, [field]: other }, text), `${field} = ${other}`).toBe(false);
    }
  });
});

/** Whether a changed configuration passes without any effect. */
function isBelieved(config: Fields, design: string): boolean {
  try {
    return JSON.stringify(designOf(config)) === design;
  } catch (error) {
    if (error instanceof ModelError) return false;
    throw error;
  }
}

describe('sizes that attention cannot have', () => {
  it.each([
    ['llama', { head_dim: 12 }, /head_dim is 12; supported is a multiple of 8/],
    ['llama', { num_key_value_heads: 3 }, /num_key_value_heads is 3; supported is a divisor of the 8 heads/],
    ['llama-linear', { hidden_size: 100 }, /hidden_size is 100; supported is 3 heads times a multiple of 8/],
    ['gpt2', { n_embd: 100 }, /n_embd is 100; supported is 3 heads times a multiple of 8/],
    ['falcon-new', { num_kv_heads: 3 }, /num_kv_heads is 3; supported is a divisor of the 4 heads/],
    ['gptj', { rotary_dim: 33 }, /rotate 33 of 64 dimensions of a head; supported is an even number/],
    ['opt', { hidden_size: 60 }, /hidden_size is 60; supported is 2 heads times a multiple of 8/],
  ])('are refused in %s from config.json: %j', (name, fields, message) => {
    expect(() => designOf({ ...caseOf(name).config, ...fields })).toThrow(message);
  });
});
