import { describe, expect, it } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { acceptsText } from '../../support/grammar/acceptance.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';

const address = (note: string) => ({
  title: note,
  type: 'object',
  description: note,
  properties: {
    title: { type: 'string', maxLength: 300, default: note },
    city: { pattern: '^[A-Z][a-z]{2,40}$' },
  },
  required: ['title', 'city'],
});

const statesOf = (value: object): number => compileProgram({ type: 'json_schema', value }).ruleOf.length;

const tokens = smallVocabulary();
const vocabulary = new GrammarVocabulary(tokens);
const accepts = (value: object, text: string): boolean =>
  acceptsText(compileConstraint({ type: 'json_schema', value }, vocabulary), text, tokens);

describe('compiles equal schemas once', () => {
  it('whatever their annotations say', () => {
    const required = ['a', 'b', 'c'];
    const properties = { a: address('home'), b: address('work'), c: address('other') };
    const $ref = '#/$defs/address';
    const referring = {
      $defs: { address: address('') },
      properties: { a: { $ref }, b: { $ref }, c: { $ref } },
    };
    expect(statesOf({ properties, required })).toBe(statesOf({ ...referring, required }));
  });

  it('but keeps values apart that look like annotations', () => {
    const schema = {
      type: 'array',
      prefixItems: [{ enum: [{ title: 'a' }] }, { enum: [{ title: 'b' }] }],
      minItems: 2,
    };
    expect(accepts(schema, '[{"title":"a"},{"title":"b"}]')).toBe(true);
    expect(accepts(schema, '[{"title":"a"},{"title":"a"}]')).toBe(false);
  });

  it('but keeps properties apart that are named like annotations', () => {
    const item = (type: string) => ({ properties: { title: { type } }, required: ['title'] });
    const schema = { type: 'array', prefixItems: [item('string'), item('integer')], minItems: 2 };
    expect(accepts(schema, '[{"title":"a"},{"title":1}]')).toBe(true);
    expect(accepts(schema, '[{"title":1},{"title":"a"}]')).toBe(false);
  });

  it('but keeps references apart that have different bases', () => {
    const resource = ($id: string, type: string) => ({
      $id,
      $defs: { t: { type } },
      type: 'array',
      items: { $ref: '#/$defs/t' },
    });
    const schema = {
      prefixItems: [resource('a', 'integer'), resource('b', 'string')],
      minItems: 2,
      type: 'array',
    };
    expect(accepts(schema, '[[1],["x"]]')).toBe(true);
    expect(accepts(schema, '[[1],[1]]')).toBe(false);
  });
});
