import { beforeAll, describe, expect, inject, test } from 'vitest';
import { complete, type Logprobs, texts } from './direct.ts';
import { runScript } from './python.ts';

/** langchain-openai, the `OpenAI` LLM. */

interface Result {
  readonly invoke: string;
  readonly stopped: string;
  readonly batch: string[];
  readonly ainvoke: string;
  readonly stream: string[];
  readonly generations: string[][];
  readonly usage: object;
  readonly logprobs: Logprobs;
}

const python = inject('python');
const prompts = ['The king', 'def f(x):', 'Then', 'Once upon a time'];
const greedy = { prompt: 'Once upon a time', max_tokens: 12, temperature: 0 };

describe.skipIf(python === null)('langchain-openai', () => {
  let result: Result;
  beforeAll(async () => {
    result = await runScript<Result>(python as string, 'langchain_client.py', inject('served'));
  });

  test('returns the same text from invoke, ainvoke and stream', async () => {
    const [text] = await texts(greedy);
    expect(result.invoke).toBe(text);
    expect(result.ainvoke).toBe(text);
    expect(result.stream.join('')).toBe(text);
    // The first token is sent at once; how many of the others share a chunk depends on timing.
    expect(result.stream.filter((piece) => piece !== '').length).toBeGreaterThan(1);
  });

  test('stops before its stop strings', () => {
    expect(result.stopped.length).toBeLessThan(result.invoke.length);
    const ends = [' the', '\n'].map((stop) => result.invoke.indexOf(stop)).filter((at) => at >= 0);
    expect(result.stopped).toBe(result.invoke.slice(0, Math.min(...ends)));
  });

  test('returns a batch in the order of its prompts', async () => {
    expect(result.batch).toEqual(await texts({ ...greedy, prompt: prompts }));
  });

  test('returns n generations of each prompt, and their usage', async () => {
    const direct = await complete({ ...greedy, prompt: prompts, n: 2, best_of: 2 });
    expect(result.generations.map((group) => group.length)).toEqual([2, 2, 2, 2]);
    expect(result.generations.flat()).toEqual(direct.choices.map(({ text }) => text));
    const { prompt_tokens, completion_tokens, total_tokens } = direct.usage;
    expect(result.usage).toMatchObject({ prompt_tokens, completion_tokens, total_tokens });
  });

  test('reads logprobs', async () => {
    const { choices } = await complete({ ...greedy, prompt: prompts[0], logprobs: 1 });
    expect(result.logprobs).toEqual(choices[0]?.logprobs);
  });
});
