import { beforeAll, describe, expect, inject, test } from 'vitest';
import { type Completion, complete, logprobsOf, tokenize } from './direct.ts';
import { runScript } from './python.ts';

/** vLLM's response classes read our answers, and the client of its benchmark reads our streams. */

type Entry = [token: number, logprob: number, rank: number, text: string];
type Choice = Completion['choices'][number];

interface Result {
  readonly plain: Completion;
  readonly echoed: Completion;
  readonly promptLogprobs: Record<string, (Entry[] | null)[]>;
  readonly streamed: Choice[];
  readonly streamedUsage: object;
  readonly benchmark: object;
  readonly tokenized: { count: number; max_model_len: number; tokens: number[]; token_strs: string[] };
  readonly detokenized: string;
  readonly models: Record<string, number>;
  readonly error: object;
  readonly unknown: string[];
}

const vllm = inject('vllm');
const prompt =
  'Once upon a time, in a village by the river, there lived a fox who counted 17 geese and 3 old boats every morning.';
const greedy = { prompt, max_tokens: 12, temperature: 0 };

describe.skipIf(vllm === null)('vLLM’s classes', () => {
  let result: Result;
  beforeAll(async () => {
    result = await runScript<Result>(vllm as string, 'vllm_client.py', inject('served'), {
      TEST_PROMPT: prompt,
    });
  });

  test('know every field of the answers', () => {
    expect(result.unknown).toEqual([]);
  });

  test.each(['plain', 'echoed'] as const)('read text, logprobs and usage (%s)', async (name) => {
    const direct = await complete({ ...greedy, logprobs: 3, echo: name === 'echoed' });
    const [choice] = direct.choices;
    expect(result[name].choices).toMatchObject([{ text: choice?.text, logprobs: logprobsOf(choice) }]);
    const { prompt_tokens, completion_tokens, total_tokens } = direct.usage;
    expect(result[name].usage).toMatchObject({ prompt_tokens, completion_tokens, total_tokens });
  });

  test('read the prompt’s own token first, then the others by rank', async () => {
    const { tokens, token_logprobs } = logprobsOf(
      (await complete({ ...greedy, echo: true, logprobs: 0 })).choices[0],
    );
    const ids = await tokenize(prompt);
    for (const [count, positions] of Object.entries(result.promptLogprobs)) {
      expect(positions).toHaveLength(ids.length);
      expect(positions[0]).toBeNull();
      for (const [index, entries] of positions.slice(1).entries()) {
        const [[id, logprob, rank, text], ...others] = entries as [Entry, ...Entry[]];
        const at = index + 1;
        expect([id, logprob, text]).toEqual([ids[at], token_logprobs[at], tokens[at]]);
        const ranks = Array.from({ length: Number(count) }, (_, place) => place + 1);
        expect(others.map((other) => other[2])).toEqual(ranks.filter((one) => one !== rank));
        expect(rank).toBeGreaterThanOrEqual(1);
      }
    }
    expect(Object.keys(result.promptLogprobs)).toEqual(['0', '1', '5', '20']);
  });

  test('read a stream with logprobs and usage as the plain answer', () => {
    const [choice] = result.plain.choices;
    expect(result.streamed.map(({ text }) => text).join('')).toBe(choice?.text);
    const logprobs = result.streamed.flatMap(({ logprobs }) => logprobs ?? []);
    for (const field of ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset'] as const)
      expect(logprobs.flatMap((one) => one[field] as unknown[])).toEqual(logprobsOf(choice)[field]);
    expect(result.streamed.at(-1)).toMatchObject({ finish_reason: 'length' });
    const { prompt_tokens, completion_tokens } = result.plain.usage;
    expect(result.streamedUsage).toMatchObject({ prompt_tokens, completion_tokens });
  });

  test('read tokens, text, models and errors', async () => {
    const ids = await tokenize(prompt);
    expect(result.tokenized).toMatchObject({ count: ids.length, tokens: ids });
    expect(result.tokenized.token_strs).toHaveLength(ids.length);
    expect(result.detokenized).toBe(prompt);
    expect(result.models.default).toBe(result.tokenized.max_model_len);
    expect(result.error).toMatchObject({ code: 400, param: 'temperature', type: 'invalid_request_error' });
  });

  test('belong to a benchmark that reads our streams', () => {
    const { prompt_tokens, completion_tokens } = result.plain.usage;
    const text = result.plain.choices[0]?.text;
    const counts = { promptTokens: prompt_tokens, completionTokens: completion_tokens };
    expect(result.benchmark).toEqual({ success: true, error: '', text, ...counts });
  });
});
