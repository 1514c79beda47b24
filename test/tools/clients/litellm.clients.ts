import { beforeAll, describe, expect, inject, test } from 'vitest';
import { type Completion, complete, texts } from './direct.ts';
import { runScript } from './python.ts';

/** LiteLLM, `text_completion`. */

interface Result {
  readonly plain: Completion;
  readonly batch: string[];
  readonly byIds: string[];
  readonly streamed: string;
  readonly streamedUsage: object;
  readonly tooLong: readonly unknown[];
  readonly noModel: readonly unknown[];
  readonly noKey: readonly unknown[];
}

const python = inject('python');
const greedy = { prompt: 'Once upon a time', max_tokens: 12, temperature: 0 };

describe.skipIf(python === null)('litellm', () => {
  let result: Result;
  beforeAll(async () => {
    result = await runScript<Result>(python as string, 'litellm_client.py', inject('served'));
  });

  test('reads text, logprobs and usage', async () => {
    const direct = await complete({ ...greedy, logprobs: 2 });
    const { text, logprobs, finish_reason } = direct.choices[0] ?? {};
    expect(result.plain.choices[0]).toMatchObject({ text, logprobs, finish_reason });
    expect(result.plain.usage).toMatchObject({
      prompt_tokens: direct.usage.prompt_tokens,
      completion_tokens: 12,
    });
  });

  test('returns a batch with n in the order of prompts and choices', async () => {
    const direct = await texts({ ...greedy, prompt: ['The king', 'def f(x):'], n: 2 });
    expect(direct).toHaveLength(4);
    expect(result.batch).toEqual(direct);
  });

  test('sends token ids unchanged', async () => {
    const prompt = [
      [1, 2, 3],
      [65, 66],
    ];
    expect(result.byIds).toEqual(await texts({ ...greedy, prompt }));
  });

  test('streams the text and the usage of a plain answer', () => {
    expect(result.streamed).toBe(result.plain.choices[0]?.text);
    const { prompt_tokens, completion_tokens } = result.plain.usage;
    expect(result.streamedUsage).toMatchObject({ prompt_tokens, completion_tokens });
  });

  test('maps errors, including an exceeded context window, to its own classes', () => {
    expect(result.tooLong).toEqual(['ContextWindowExceededError', 400]);
    expect(result.noModel).toEqual(['NotFoundError', 404]);
    expect(result.noKey).toEqual(['AuthenticationError', 401]);
  });
});
