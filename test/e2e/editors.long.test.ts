import { describe, expect, test } from 'vitest';
import { completionResponse } from '../../shared/completion-response.ts';
import { nativeResult } from '../../shared/native-response.ts';
import { sharedSystem } from '../support/shared-system.ts';
import { chunksOf, nativePayloadsOf } from '../worker/support/sse.ts';
import * as editors from './editor-requests.ts';

/** Replays the requests of editors against the whole product, and reads the answers as the editors do. */

/** Tokens in a chunk of prefill on the CPU. */
const CHUNK = 32;

const system = sharedSystem();

type Fields = Readonly<Record<string, unknown>>;

async function send(...request: Parameters<typeof system.request>): Promise<string> {
  const response = await system.request(...request);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  return text;
}

const native = async (path: string, body: Fields) => nativeResult.parse(JSON.parse(await send(path, body)));

const tokenCount = async (prompt: string): Promise<number> =>
  (JSON.parse(await send('/tokenize', { prompt })) as { count: number }).count;

describe('llama.vim', () => {
  test('warms the cache with its files, and then computes only the rest', async () => {
    expect(JSON.parse(await send('/infill', editors.LLAMA_VIM_WARM))).toEqual({});
    const answer = JSON.parse(await send('/infill', editors.LLAMA_VIM_FIM)) as Record<string, unknown>;
    expect(Object.keys(answer).toSorted()).toEqual([...editors.LLAMA_VIM_FIM.response_fields].toSorted());
    expect(answer).toMatchObject({ content: expect.any(String), truncated: false });
    const files = await tokenCount(editors.LLAMA_VIM_FIM.input_extra.map(({ text }) => text).join(''));
    // Prefixes are cached in chunks.
    expect(answer.tokens_cached).toBeGreaterThan(files - CHUNK);
  });
});

describe('llama.vscode', () => {
  test('reads the context length, the state and a count of tokens, warms the cache and gets a completion', async () => {
    const props = JSON.parse(await send(editors.LLAMA_VSCODE_PROPS)) as {
      default_generation_settings: { n_ctx: number };
    };
    expect(props.default_generation_settings.n_ctx).toBe(2_048);
    expect(JSON.parse(await send('/health'))).toEqual({ status: 'ok' });
    const counted = JSON.parse(await send('/tokenize', editors.LLAMA_VSCODE_COUNT)) as { tokens: unknown[] };
    expect(counted.tokens).toHaveLength(await tokenCount(editors.LLAMA_VSCODE_COUNT.content));
    expect(await native('/infill', editors.LLAMA_VSCODE_WARM)).toMatchObject({
      content: '',
      tokens_predicted: 0,
    });
    const text = await send('/infill', editors.LLAMA_VSCODE_FIM);
    const answers = nativeResult.array().parse(JSON.parse(text));
    expect(answers.map(({ index }) => index)).toEqual([0, 1, 2]);
    for (const { content, tokens_predicted } of answers)
      expect([typeof content, typeof tokens_predicted]).toEqual(['string', 'number']);
    const [answer] = answers;
    expect(answer?.tokens_cached).toBeGreaterThan(0);
    expect(answer?.timings?.predicted_n).toBe(answer?.tokens_predicted);
    expect(answer?.generation_settings).toMatchObject({ top_p: 0.99, temperature: 1, repeat_penalty: 1 });
  });
});

describe('Continue', () => {
  test('reads the text from the parts of a stream', async () => {
    const body = { ...editors.CONTINUE, temperature: 0 };
    const events = nativeResult.array().parse(nativePayloadsOf(await send('/completion', body)));
    const text = events.map(({ content }) => content ?? '').join('');
    expect(text).not.toBe('');
    expect(text).toBe((await native('/completion', { ...body, stream: false })).content);
    expect(events.filter(({ stop }) => stop)).toEqual([events.at(-1)]);
  });
});

describe('minuet', () => {
  test('gets the same text with markers in the prompt and with a suffix', async () => {
    const textOf = async (body: Fields, headers: Readonly<Record<string, string>>) =>
      chunksOf(await send('/v1/completions', { ...body, temperature: 0 }, headers))
        .flatMap(({ choices }) => choices)
        .map(({ text }) => text)
        .join('');
    const marked = await textOf(editors.MINUET_MARKED, { 'x-dialect': 'llamacpp' });
    expect(marked).not.toBe('');
    expect(await textOf(editors.MINUET_SUFFIX, { 'x-dialect': 'llamacpp' })).toBe(marked);
  });
});

describe('Zed', () => {
  test('gets an answer with text, although the model has other markers', async () => {
    const { choices } = completionResponse.parse(JSON.parse(await send('/v1/completions', editors.ZED)));
    expect(choices.map(({ index }) => index)).toEqual([0]);
  });
});

describe('the built-in model', () => {
  const body = {
    input_prefix: 'def add(a, b):\n    return ',
    input_suffix: '\n\nprint(add(1, 2))\n',
    n_predict: 12,
    temperature: 0,
    samplers: ['temperature'],
  };

  test('fills a gap as with a suffix, and continues the start of the text', async () => {
    const whole = await native('/infill', { ...body, n_probs: 1 });
    const request = { prompt: body.input_prefix, suffix: body.input_suffix, max_tokens: 12, temperature: 0 };
    const completion = JSON.parse(await send('/v1/completions', { model: 'default', ...request }));
    expect(whole.content).toBe(completionResponse.parse(completion).choices[0]?.text);
    const start = whole.completion_probabilities?.[0]?.token ?? '';
    const { content = '' } = await native('/infill', { ...body, prompt: start, n_predict: 11 });
    expect(start).not.toBe('');
    expect(start + content).toBe(whole.content);
  });
});
