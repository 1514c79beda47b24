import { expect, test } from 'vitest';
import { completionRequest } from '../../../../shared/completion.ts';
import { addressOf, examplesOf } from '../../../../worker/site/docs/operation/exchange.ts';
import { fieldListsOf, fieldsOf } from '../../../../worker/site/docs/operation/operation-fields.ts';
import { publicDocument } from './public-document.ts';

const { components } = await publicDocument();
const fields = fieldsOf(components.schemas.CompletionRequest!);
const field = (name: string) => fields.find((one) => one.name === name)!;

test('every field of a completion is listed once: by itself, or as another name of a field', () => {
  const listed = fields.flatMap(({ name, aliases }) => [name, ...aliases.map((alias) => alias.name)]);
  expect(listed.toSorted()).toEqual(Object.keys(completionRequest.shape).toSorted());
  expect(field('max_tokens').aliases.map(({ name }) => name)).toEqual(['max_completion_tokens', 'n_predict']);
  expect(field('logprobs').aliases).toMatchObject([
    { name: 'top_logprobs', note: '' },
    { name: 'n_probs', note: 'except that 0 returns no logprobs' },
  ]);
  expect(listed).not.toContain(undefined);
  expect(fields.filter(({ description }) => description.startsWith('Alias'))).toEqual([]);
});

test('types and limits are words, and do not repeat that null means absent', () => {
  const shown = (name: string) => [field(name).type, ...field(name).limits];
  expect(shown('temperature')).toEqual(['number', '0 to 2']);
  expect(shown('max_tokens')).toEqual(['integer', '≥ -1']);
  expect(shown('stream')).toEqual(['boolean']);
  expect(shown('stop')).toEqual(['string | array of string', '1 to 4096 characters', '≤ 32 elements']);
  expect(shown('repetition_penalty')).toEqual(['number', '> 0, ≤ 2']);
  expect(shown('truncation_side')).toEqual(['"left" | "right"']);
  expect(shown('allowed_token_ids')).toEqual(['array of integer', '1 to 524288 elements']);
  expect(fields.filter(({ required }) => required).map(({ name }) => name)).toEqual(['prompt']);
  expect(JSON.stringify(fields)).not.toContain('null |');
});

test('fields of nested objects are listed in their field', () => {
  const [options] = field('stream_options').fields;
  expect(options!.map(({ name }) => name)).toContain('include_usage');
  const [answer] = fieldListsOf(components.schemas.Completion!);
  const [choice] = answer!.find(({ name }) => name === 'choices')!.fields;
  expect(choice!.map(({ name }) => name)).toEqual(expect.arrayContaining(['text', 'logprobs']));
});

test('a body without documented examples has its required fields', () => {
  const schema = { properties: { id: { type: 'string' }, n: { type: 'integer' } }, required: ['id'] };
  expect(examplesOf({ schema })).toEqual([['required', { id: '' }]]);
  expect(examplesOf({ schema, examples: { plain: { value: { n: 2 } } } })).toEqual([['plain', { n: 2 }]]);
});

test('values go into path and query; a path without its value keeps the name', () => {
  const parameters = [
    { name: 'id', in: 'path', schema: {} },
    { name: 'limit', in: 'query', schema: {} },
    { name: 'x-dialect', in: 'header', schema: {} },
  ] as const;
  expect(addressOf('/v1/models/{id}', parameters, { id: 'org/tiny', 'x-dialect': 'vllm' })).toBe(
    '/v1/models/org%2Ftiny',
  );
  expect(addressOf('/v1/models/{id}', parameters, { limit: '5' })).toBe('/v1/models/{id}?limit=5');
});
