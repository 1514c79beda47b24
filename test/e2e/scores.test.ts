import { afterAll, beforeAll, expect, test } from 'vitest';
import { scoreResponse } from '../../shared/score.ts';
import { type System, startSystem } from '../support/system.ts';

let system: System;
beforeAll(async () => {
  system = await startSystem();
});
afterAll(async () => {
  await system.stop();
});

async function post(route: string, fields: object): Promise<unknown> {
  const response = await fetch(`${system.url}${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${system.apiKey}` },
    body: JSON.stringify({ model: 'default', ...fields }),
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text);
}

interface Echo {
  readonly choices: readonly {
    readonly text: string;
    readonly logprobs: { readonly tokens: readonly string[]; readonly token_logprobs: readonly number[] };
  }[];
}

/** How an evaluation client scores through completions: it encodes, echoes, and slices at the length of the context. */
async function throughEcho(context: string, continuation: string) {
  const encode = async (prompt: string) =>
    ((await post('/tokenize', { prompt })) as { tokens: number[] }).tokens;
  const before = await encode(context);
  const whole = await encode(context + continuation);
  const prompt = [...before, ...whole.slice(before.length)];
  const answer = (await post('/v1/completions', { prompt, max_tokens: 0, echo: true, logprobs: 1 })) as Echo;
  const { tokens, token_logprobs } = answer.choices[0]!.logprobs;
  return { tokens: tokens.slice(before.length), token_logprobs: token_logprobs.slice(before.length) };
}

test('scores of the built-in model are bit for bit those of an evaluation client, in any company', async () => {
  const story = 'Once upon a time there was a little girl who lived in a house near the woods. '
    .repeat(4)
    .trim();
  const continuations = [' She was happy', ' x', ' She', '?', ' and then they all went home to sleep'];
  const requests = ['The king', story].map(async (prompt) => ({
    prompt,
    answer: scoreResponse.parse(await post('/v1/score', { prompt, continuations, token_logprobs: true })),
  }));
  for (const { prompt, answer } of await Promise.all(requests)) {
    for (const [index, continuation] of continuations.entries()) {
      const { tokens, token_logprobs } = await throughEcho(prompt, continuation);
      expect(answer.data[index]).toMatchObject({
        ...{ tokens, token_logprobs, token_count: tokens.length },
        logprob: token_logprobs.reduce((sum, logprob) => sum + logprob, 0),
      });
    }
  }
});

test('the greedy continuation is recognised', async () => {
  const prompt = 'Once upon a time';
  const { choices } = (await post('/v1/completions', { prompt, max_tokens: 4, temperature: 0 })) as Echo;
  const continuations = [choices[0]!.text, ' zebra zebra'];
  const { data } = scoreResponse.parse(await post('/v1/score', { prompt, continuations }));
  expect(data.map(({ is_greedy }) => is_greedy)).toEqual([true, false]);
});
