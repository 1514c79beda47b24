import { expect, test } from 'vitest';
import { scoringResponse } from '../../shared/label-scores.ts';
import { scoreResponse } from '../../shared/score.ts';
import { sharedSystem } from '../support/shared-system.ts';

const system = sharedSystem();

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

/** How an evaluation client scores through completions: it encodes, echoes, slices after the context. */
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
        tokens,
        token_logprobs,
        token_count: tokens.length,
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

test('label scores are the listed logprobs of a completion', async () => {
  const labels = ((await post('/tokenize', { prompt: ' time' })) as { tokens: number[] }).tokens;
  const label_token_ids = [...labels, 5, 300];
  const fields = { model: 'default', query: 'Once upon', items: [' a', ' the'], label_token_ids };
  const { scores } = scoringResponse.parse(await post('/v1/score', fields));
  for (const [index, item] of fields.items.entries()) {
    const { choices } = (await post('/v1/completions', {
      prompt: fields.query + item,
      max_tokens: 1,
      logprobs: 0,
      logprob_token_ids: label_token_ids,
      return_tokens_as_token_ids: true,
    })) as { choices: { logprobs: { top_logprobs: Record<string, number>[] } }[] };
    const listed = choices[0]?.logprobs.top_logprobs[0] ?? {};
    const expected = label_token_ids.map((id) => Math.exp(listed[`token_id:${id}`] ?? 1));
    for (const [label, value] of expected.entries()) expect(scores[index]?.[label]).toBeCloseTo(value, 6);
  }
});
