import { describe, expect, test } from 'vitest';
import { sharedSystem } from '../support/shared-system.ts';
import { DOCUMENTED_REQUESTS } from '../worker/dialects/documents.ts';
import { payloadsOf } from '../worker/support/sse.ts';

/** Sends every example request of the compatible APIs' documents to the product, with its model's name. */

const system = sharedSystem();

const model = 'continuo-mini';

interface Completion {
  readonly object: string;
  readonly choices: { text: string; index: number; finish_reason: string | null }[];
  readonly usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
}

/** Sends a request. Returns its answer, or the chunks of its stream. */
async function answersTo(fields: Readonly<Record<string, unknown>>): Promise<Completion[]> {
  const response = await system.request('/v1/completions', { ...fields, model });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return (fields.stream ? payloadsOf(text) : [JSON.parse(text)]) as Completion[];
}

const textOf = (answers: readonly Completion[]) =>
  answers.map(({ choices }) => choices[0]?.text ?? '').join('');

describe('the documented request', () => {
  test.each(Object.entries(DOCUMENTED_REQUESTS))(
    '%s gets whole choices and their usage',
    async (_, fields) => {
      const answers = await answersTo(fields);
      for (const { object } of answers) expect(object).toBe('text_completion');
      const prompts = Array.isArray(fields.prompt) ? fields.prompt.length : 1;
      const ends = answers.flatMap(({ choices }) => choices).filter(({ finish_reason: end }) => end !== null);
      expect(ends.map(({ index }) => index)).toEqual(Array.from({ length: prompts }, (_, index) => index));
      for (const { finish_reason } of ends) expect(['stop', 'length']).toContain(finish_reason);
      const { usage } = answers.at(-1)!;
      if (fields.stream && fields.stream_options === undefined) expect(usage).toBeUndefined();
      else expect(usage?.total_tokens).toBe(usage!.prompt_tokens + usage!.completion_tokens);
    },
  );
});

describe('its text', () => {
  const textFor = async (name: string, changes: object = {}) =>
    textOf(await answersTo({ ...DOCUMENTED_REQUESTS[name], ...changes }));

  test('ends before a stop', async () => {
    expect(await textFor('Pendra: completion of code')).not.toContain('\n\n');
  });

  test('matches a regex, and is empty if that is also the stop', async () => {
    expect(await textFor('mistral.rs: every field', { stop: null })).toBe('example');
    expect(await textFor('mistral.rs: every field')).toBe('');
  });

  test('matches a grammar', async () => {
    expect(await textFor('llama.cpp: grammar')).toMatch(/^[0-9+\-*/()]+$/);
  });

  test('is JSON, or the beginning of it', async () => {
    expect(await textFor('llama.cpp: JSON schema')).toMatch(/^\s*\{/);
    expect(await textFor('Fireworks: token ids, truncation, JSON', { max_tokens: 8 })).toMatch(/^\s*(\{|$)/);
  });
});
