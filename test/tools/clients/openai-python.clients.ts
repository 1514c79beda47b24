import { beforeAll, describe, expect, inject, test } from 'vitest';
import { type Completion, complete, running, texts } from './direct.ts';
import { runScript } from './python.ts';

/** The openai package for Python. */

interface Result {
  readonly plain: Completion;
  readonly requestId: string;
  readonly streamed: { readonly text: string; readonly reasons: string[]; readonly usage: object };
  readonly scored: Completion['choices'][number];
  readonly byIds: Completion;
  readonly concurrent: string[];
  readonly models: string[];
  readonly batch: { readonly text: string; readonly listed: boolean };
  readonly brokenOff: number;
  readonly refused: Readonly<Record<'n' | 'model' | 'key' | 'timeout', readonly unknown[]>>;
}

const python = inject('python');
const greedy = { prompt: 'Once upon a time', max_tokens: 12, temperature: 0 };

describe.skipIf(python === null)('openai-python', () => {
  let result: Result;
  beforeAll(async () => {
    result = await runScript<Result>(python as string, 'openai_client.py', inject('served'));
  });

  test('reads a completion and its request id', async () => {
    const direct = await complete(greedy);
    expect(result.plain.choices).toMatchObject(direct.choices);
    expect(result.plain.usage).toMatchObject({ ...direct.usage, completion_tokens: 12 });
    expect(result.requestId).toMatch(/\S{8,}/);
  });

  test('streams the text of a plain answer, one finish reason and the usage', () => {
    expect(result.streamed.text).toBe(result.plain.choices[0]?.text);
    expect(result.streamed.reasons).toEqual(['length']);
    expect(result.streamed.usage).toMatchObject({
      prompt_tokens: result.plain.usage.prompt_tokens,
      completion_tokens: 12,
    });
  });

  test('runs a batch', () => {
    expect(result.batch).toEqual({ text: result.plain.choices[0]?.text, listed: true });
  });

  test('reads the scores of an echoed prompt', async () => {
    const { choices, usage } = await complete({ ...greedy, echo: true, logprobs: 2 });
    expect(result.scored).toMatchObject({ text: choices[0]?.text, logprobs: choices[0]?.logprobs });
    expect(result.scored.logprobs?.tokens).toHaveLength(usage.total_tokens);
  });

  test('sends a batch of token ids and gets the answers in order', async () => {
    const prompt = [
      [1, 2, 3],
      [65, 66],
    ];
    expect(result.byIds.usage.prompt_tokens).toBe(5);
    for (const [at, ids] of prompt.entries()) {
      const [alone] = await texts({ ...greedy, prompt: ids });
      expect(result.byIds.choices[at]).toMatchObject({ index: at, text: alone });
    }
  });

  test('gets the same answers concurrently with asyncio as one by one', async () => {
    expect(result.concurrent).toEqual(await texts({ ...greedy, prompt: ['The king', 'def f(x):', 'Then'] }));
  });

  test('lists the models', () => expect(result.models).toContain('continuo-mini'));

  test('raises its own error classes', () => {
    expect(result.refused.n.slice(0, 2)).toEqual(['BadRequestError', 400]);
    expect(result.refused.n[3]).toBe('n');
    expect(result.refused.model).toEqual(['NotFoundError', 404, 'model_not_found', 'model']);
    expect(result.refused.key.slice(0, 3)).toEqual(['AuthenticationError', 401, 'invalid_api_key']);
    expect(result.refused.timeout).toEqual(['APITimeoutError']);
  });

  test('stops the origin when it closes a stream after three chunks', async () => {
    expect(result.brokenOff).toBe(3);
    await expect.poll(running, { timeout: 60_000 }).toBe(0);
  });
});
