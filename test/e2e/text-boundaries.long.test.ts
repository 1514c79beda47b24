import { describe, expect, test } from 'vitest';
import { sharedSystem } from '../support/shared-system.ts';

/** Tests stops, banned phrases and healed prompts through the whole product. */

const system = sharedSystem();

interface Answer {
  readonly choices: readonly {
    readonly text: string;
    readonly finish_reason: string;
    readonly stop_reason?: string;
    readonly logprobs: { readonly tokens: readonly string[] } | null;
  }[];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
}

const post = (fields: object): Promise<Response> =>
  system.request('/v1/completions', {
    model: 'default',
    prompt: 'Once upon a time',
    max_tokens: 60,
    temperature: 1,
    seed: 5,
    // What a seed draws depends on the bits of this machine's kernels, and may be the end of the text.
    ignore_eos: true,
    ...fields,
  });

async function complete(fields: object): Promise<Answer> {
  const response = await post(fields);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

async function streamed(fields: object): Promise<string> {
  const text = await (await post({ ...fields, stream: true })).text();
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!) as Answer);
  return events.map(({ choices }) => choices[0]?.text ?? '').join('');
}

describe('stop_regex', () => {
  test('ends the text before the first match, streamed or not', async () => {
    const [whole] = (await complete({})).choices;
    // Which words there are depends on the bits of this machine's kernels.
    const word = /[a-z]{4,}(?=\W)/.exec(whole!.text.slice(40))![0];
    const pattern = `[${word[0]}%]\\w{${word.length - 1}}\\W`;
    const match = new RegExp(pattern).exec(whole!.text);
    const fields = { stop_regex: ['\\d+%', pattern] };
    const [cut] = (await complete(fields)).choices;
    expect(cut).toMatchObject({ text: whole!.text.slice(0, match!.index), finish_reason: 'stop' });
    expect(await streamed(fields)).toBe(cut!.text);
    const kept = await complete({ ...fields, include_stop_str_in_output: true });
    expect(kept.choices[0]!.text).toBe(cut!.text + match![0]);
  });
});

describe('banned_phrases', () => {
  test('never appear, for several choices, with logprobs, a constraint, and streamed', async () => {
    const banned = [' the', ' was', { regex: '[Ss]he|[,;]' }, 'nce'];
    const isBanned = / the| was|[Ss]he|[,;]|nce/;
    for (const fields of [{}, { n: 4 }, { logprobs: 2 }, { regex: '[ -~]{80,}' }, { temperature: 0 }]) {
      const plain = await complete(fields);
      expect(plain.choices.some(({ text }) => isBanned.test(text))).toBe(true);
      const answer = await complete({ ...fields, banned_phrases: banned });
      for (const { text, logprobs } of answer.choices) {
        expect(text).not.toMatch(isBanned);
        if (logprobs !== null) expect(logprobs.tokens.join('')).toBe(text);
      }
      expect(answer.usage.completion_tokens).toBe(60 * answer.choices.length);
    }
    expect(await streamed({ banned_phrases: banned })).toBe(
      (await complete({ banned_phrases: banned })).choices[0]!.text,
    );
  });
});

describe('token_healing', () => {
  test('continues a word that the prompt has cut, and does not repeat the prompt', async () => {
    const healed = { prompt: 'Once upon a ti', temperature: 0, max_tokens: 1, token_healing: true };
    const plain = await complete({ ...healed, token_healing: false });
    const answer = await complete(healed);
    expect(answer.choices[0]!.text).toBe('me');
    expect(answer.usage).toMatchObject({ prompt_tokens: plain.usage.prompt_tokens, completion_tokens: 1 });
    const shown = await complete({ ...healed, echo: true, logprobs: 1, max_tokens: 4 });
    expect(shown.choices[0]!.logprobs!.tokens.join('')).toBe(shown.choices[0]!.text);
    expect(shown.choices[0]!.text).toMatch(/^Once upon a time/);
  });

  test('is announced for the model', async () => {
    const response = await system.request('/v1/models');
    expect(await response.json()).toMatchObject({ data: [{ token_healing: true }, {}] });
  });
});
