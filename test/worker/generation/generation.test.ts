import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { completionResponse, errorResponseBody } from '../../../shared/completion-response.ts';
import { forAllTests } from '../../support/for-tests.ts';
import { runs } from '../../support/random.ts';
import { FIELD_TABLE } from '../dialects/field-table.ts';
import { BEGIN, CONTEXT, END, startRealSystem, VOCABULARY } from '../support/real-origin.ts';
import { assemble, payloadsOf } from '../support/sse.ts';

/** Tests Worker and origin with a random fp32 model whose tokens include every byte. */

/** `FUZZ_COMBINATIONS=5000` for a long run. */
const COMBINATIONS = Number(process.env.FUZZ_COMBINATIONS ?? runs(300));

const system = forAllTests(startRealSystem);

type Fields = Readonly<Record<string, unknown>>;

async function refusal(fields: Fields) {
  const response = await system.post({ prompt: 'a', ...fields });
  return { status: response.status, ...errorResponseBody.parse(await response.json()).error };
}

/** Requests one choice plainly and as a stream, and expects the same result. */
async function choiceOf(fields: Fields) {
  const [choice] = (await system.complete(fields)).choices;
  const chunks = await system.stream(fields);
  expect(assemble(chunks)).toEqual([choice]);
  const pieces = chunks
    .flatMap(({ choices }) => choices.map(({ text }) => text))
    .filter((text) => text !== '');
  return { ...choice, pieces };
}

describe('stream and plain answer of one seed have the same text, logprobs and finish reason', () => {
  const cases = [1, 3].flatMap((n) =>
    [['ab'], ['ab', 'Straße', 'x 🙂']].flatMap((prompt) =>
      [{}, { logprobs: 3 }, { logprobs: 0, echo: true }].map((more) => ({ n, prompt, ...more })),
    ),
  );
  test.each(cases.map((fields) => [JSON.stringify(fields), fields] as const))('%s', async (_, fields) => {
    const request = { ...fields, seed: 11, temperature: 1, max_tokens: 12, stop: ['e'] };
    const plain = await system.complete(request);
    expect(assemble(await system.stream(request))).toEqual(plain.choices);
    expect(plain.choices).toHaveLength(fields.n * fields.prompt.length);
  });
});

describe('stop strings', () => {
  /** Spells a text one byte a token, then ends. */
  const spelling = (text: string, fields: Fields) =>
    choiceOf({
      prompt: 'x',
      max_tokens: 40,
      grammar: `root ::= ${JSON.stringify(text)}`,
      allowed_token_ids: [...Array.from({ length: 256 }, (_, byte) => byte), END],
      logprobs: 0,
      ...fields,
    });

  test.each<[string, string, string[], string, string | null]>([
    ['of two tokens', 'we said stop it', ['st'], 'we said ', 'st'],
    ['of three tokens', 'we said stop it', ['sto'], 'we said ', 'sto'],
    ['that overlap: the earliest end, then the earliest start', 'xabcy', ['abc', 'b', 'ab'], 'x', 'ab'],
    ['that overlap: one that would have ended later', 'xabcy', ['abcy', 'bc'], 'xa', 'bc'],
    ['at the first token', 'abc', ['a'], '', 'a'],
    ['beside a character of several bytes', 'aéb', ['b'], 'aé', 'b'],
    ['that are a character of several bytes', 'a🙂b', ['🙂'], 'a', '🙂'],
    ['that have begun when the text ends: what was held back is given out', 'abx', ['xyz'], 'abx', null],
    ['that have begun twice: only the last can still come', 'aab!', ['ab?', 'aa?'], 'aab!', null],
  ])('%s', async (_, whole, stop, text, stopReason) => {
    const choice = await spelling(whole, { stop });
    expect(choice).toMatchObject({ text, finish_reason: 'stop', stop_reason: stopReason });
    expect(choice.pieces.join('')).toBe(text);
    // The tokens that complete a stop string are included, their text is not.
    const names = choice.logprobs?.tokens.filter((name) => name !== '</s>') ?? [];
    expect(names.length).toBeGreaterThanOrEqual(Buffer.from(text).length);
    if (stopReason !== null) {
      const kept = await spelling(whole, { stop, include_stop_str_in_output: true });
      expect(kept).toMatchObject({ text: text + stopReason, stop_reason: stopReason });
    }
  });

  test('equal to the text of a special token stop at the hidden token', async () => {
    const forced = { prompt: 'x', max_tokens: 9, logit_bias: { [BEGIN]: 100 }, temperature: 0 };
    expect(await choiceOf(forced)).toMatchObject({ text: '', finish_reason: 'length' });
    const ended = { text: '', finish_reason: 'stop' };
    expect(await choiceOf({ ...forced, stop: ['<s>'] })).toMatchObject({ ...ended, stop_reason: '<s>' });
    expect(await choiceOf({ ...forced, stop_token_ids: [BEGIN] })).toMatchObject({
      ...ended,
      stop_reason: BEGIN,
    });
    expect((await system.complete({ ...forced, stop: ['<s>'] })).usage.completion_tokens).toBe(1);
  });

  test('are not searched in the prompt or across its end', async () => {
    const choice = await spelling('cd', { prompt: 'ab', stop: ['ab', 'bc'], echo: true });
    expect(choice).toMatchObject({ text: 'abcd', stop_reason: null });
  });

  test('have no effect before min_tokens', async () => {
    expect(await spelling('abab', { stop: ['b'], min_tokens: 3 })).toMatchObject({ text: 'aba' });
  });
});

test('a character of several tokens is sent whole, never as U+FFFD', async () => {
  const fields = { prompt: 'x', grammar: 'root ::= [🙂-🙏日本語가-힣é]{12}', max_tokens: 80, temperature: 1 };
  let tokens = 0;
  for (let seed = 0; seed < 8; seed += 1) {
    const { text, pieces } = await choiceOf({ ...fields, seed });
    expect([...(text ?? '')]).toHaveLength(12);
    expect(pieces.every((piece) => piece.isWellFormed() && !piece.includes('\ufffd'))).toBe(true);
    tokens += Buffer.from(text ?? '').length;
  }
  expect(tokens).toBeGreaterThan(8 * 12 * 2);
});

test('a seed gives the same text and logprobs with and without sixteen concurrent requests', async () => {
  const request = { prompt: 'once', max_tokens: 40, seed: 99, temperature: 1, logprobs: 3, n: 2 };
  const alone = (await system.complete(request)).choices;
  const others = Array.from({ length: 16 }, (_, seed) =>
    system.complete({ ...request, prompt: 'other '.repeat(seed + 1), seed, max_tokens: 60, n: 1 }),
  );
  const among = (await system.complete(request)).choices;
  await Promise.all(others);
  expect(among).toEqual(alone);
});

describe('context', () => {
  const ids = (length: number) => Array.from({ length }, (_, at) => at % 200);
  const full = { prompt: ids(CONTEXT - 1), max_tokens: 100, ignore_eos: true };

  test('with one position left: one token by default, an error if requested', async () => {
    const answer = await system.complete(full);
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'length' });
    expect(answer.usage).toMatchObject({ prompt_tokens: CONTEXT - 1, completion_tokens: 1 });
    expect(await refusal({ ...full, context_length_exceeded_behavior: 'error' })).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
      param: 'prompt',
      message: expect.stringContaining(`maximum context length is ${CONTEXT} tokens`),
    });
  });

  test('with no position left: no token, or an error on request unless max_tokens is 0', async () => {
    const prompt = ids(CONTEXT);
    expect((await system.complete({ prompt, max_tokens: 1 })).usage.completion_tokens).toBe(0);
    const failing = { prompt, max_tokens: 1, context_length_exceeded_behavior: 'error' };
    expect(await refusal(failing)).toMatchObject({ code: 'context_length_exceeded' });
    expect((await system.complete({ prompt, max_tokens: 0 })).usage.prompt_tokens).toBe(CONTEXT);
    expect(await refusal({ prompt: ids(CONTEXT + 1), max_tokens: 0 })).toMatchObject({
      code: 'context_length_exceeded',
    });
  });

  test('a truncated prompt keeps its end and leaves room for max_tokens', async () => {
    const prompt = ids(CONTEXT + 300);
    const cut = { prompt, truncate_sequence: true, ignore_eos: true, return_token_ids: true };
    for (const [max_tokens, reserved] of [
      [100, 100],
      [0, 0],
      [-1, 1],
      [10 * CONTEXT, CONTEXT - 1],
    ] as const) {
      const { choices, usage } = await system.complete({ ...cut, max_tokens });
      const kept = choices[0]?.prompt_token_ids ?? [];
      expect(kept).toEqual(prompt.slice(-kept.length));
      expect(usage.prompt_tokens).toBe(CONTEXT - reserved);
      expect(kept).toHaveLength(usage.prompt_tokens);
    }
    const last = await system.complete({ prompt, truncate_prompt_tokens: 7, max_tokens: 1 });
    expect(last.usage.prompt_tokens).toBe(7);
  });
});

describe('max_tokens 0', () => {
  test('generates nothing, plain or streamed; with echo it returns the prompt', async () => {
    const nothing = await choiceOf({ prompt: 'abc', max_tokens: 0 });
    expect(nothing).toMatchObject({ text: '', finish_reason: 'length', logprobs: null, pieces: [] });
    const echoed = await choiceOf({ prompt: 'abc', max_tokens: 0, echo: true, logprobs: 0 });
    expect(echoed).toMatchObject({ text: 'abc', finish_reason: 'length', pieces: ['abc'] });
    const { usage } = await system.complete({ prompt: 'abc', max_tokens: 0, echo: true });
    expect(usage.completion_tokens).toBe(0);
  });
});

test('a prompt that fills the context ends at once, beside one that does not, plain and streamed', async () => {
  const full = new Array(CONTEXT).fill(7);
  const fields = { prompt: [full, full.slice(1), full.slice(2)], max_tokens: 5, ignore_eos: true };
  const { choices, usage } = await system.complete(fields);
  expect(choices.map(({ finish_reason }) => finish_reason)).toEqual(['length', 'length', 'length']);
  expect([choices[0]?.text, usage.completion_tokens]).toEqual(['', 3]);
  const chunks = await system.stream({ ...fields, prompt: full });
  expect(chunks.at(-1)?.choices[0]).toMatchObject({ text: '', finish_reason: 'length' });
});

test('an empty prompt begins a new document in each of its forms, and keeps its place in a list', async () => {
  const idsOf = async (prompt: unknown) => {
    const { choices } = await system.complete({ prompt, max_tokens: 1, return_token_ids: true, echo: true });
    return choices.map(({ prompt_token_ids: ids }) => ids);
  };
  for (const prompt of ['', null, [], [[]], ['']]) expect(await idsOf(prompt)).toEqual([[BEGIN]]);
  expect(await idsOf([[5], '', [], [6]])).toEqual([[5], [BEGIN], [BEGIN], [6]]);
});

describe('errors that the origin finds name the client’s field', () => {
  const schema = { type: 'nonsense' };
  test.each<[string, Fields, string, string]>([
    ['prompt', { prompt: [1, VOCABULARY] }, 'invalid_value', 'prompt[1]'],
    ['prompts', { prompt: [[1], [VOCABULARY]] }, 'invalid_value', 'prompt[1][0]'],
    ['logit_bias', { logit_bias: { [VOCABULARY]: 1 } }, 'invalid_value', 'logit_bias'],
    ['allowed_token_ids', { allowed_token_ids: [VOCABULARY] }, 'invalid_value', 'allowed_token_ids'],
    ['stop_token_ids', { stop_token_ids: [VOCABULARY] }, 'invalid_value', 'stop_token_ids'],
    ['suffix, without a template', { suffix: 'b' }, 'unsupported_parameter', 'suffix'],
    ['too long', { prompt: 'a '.repeat(CONTEXT) }, 'context_length_exceeded', 'prompt'],
    ['grammar', { grammar: 'root ::= (' }, 'invalid_grammar', 'grammar'],
    ['ebnf', { ebnf: 'root ::= (' }, 'invalid_grammar', 'ebnf'],
    ['guided_regex', { guided_regex: '(' }, 'invalid_grammar', 'guided_regex'],
    ['grammar.value', { grammar: { type: 'lark', value: 'start: (' } }, 'invalid_grammar', 'grammar.value'],
    ['guided_json', { guided_json: schema }, 'invalid_json_schema', 'guided_json'],
    [
      'response_format.schema',
      { response_format: { type: 'json_object', schema } },
      'invalid_json_schema',
      'response_format.schema',
    ],
  ])('%s', async (_, fields, code, param) => {
    for (const stream of [false, true]) {
      const error = await refusal({ ...fields, stream });
      expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', code, param });
      expect(error.message).toMatch(code === 'context_length_exceeded' ? /prompt/ : `'${param}'`);
    }
  });
});

test('no accepted number makes the sampler fail', async () => {
  const positive = fc.constantFrom(
    0,
    Number.MIN_VALUE,
    1e-300,
    1e-6,
    0.5,
    1,
    2,
    1e6,
    1e300,
    Number.MAX_VALUE,
  );
  const share = fc.constantFrom(0, Number.MIN_VALUE, 1e-9, 0.5, 1 - 2 ** -53, 1);
  const whole = fc.constantFrom(0, 1, 2, 100, 2_147_483_647);
  const penalty = fc.constantFrom(-2, -Number.MIN_VALUE, 0, 2);
  const numbers = fc.record(
    {
      temperature: fc.constantFrom(0, Number.MIN_VALUE, 1e-5, 1, 2),
      top_p: share,
      top_k: whole,
      min_p: share,
      typical_p: share,
      top_n_sigma: fc.oneof(
        positive,
        positive.map((value) => -value),
      ),
      xtc_probability: share,
      xtc_threshold: share,
      dynatemp_range: positive,
      dynatemp_exponent: positive,
      min_keep: whole,
      mirostat: fc.constantFrom(0, 1, 2),
      mirostat_tau: positive,
      mirostat_eta: share,
      frequency_penalty: penalty,
      presence_penalty: penalty,
      repetition_penalty: fc.constantFrom(Number.MIN_VALUE, 1e-300, 1, 2),
      repeat_last_n: fc.constantFrom(-1, 0, 1, 2_147_483_647),
      dry_multiplier: positive,
      dry_base: fc.constantFrom(1, 1 + 2 ** -52, 2, 1e300, Number.MAX_VALUE),
      dry_allowed_length: whole,
      dry_penalty_last_n: fc.constantFrom(-1, 0, 1, 2_147_483_647),
      logit_bias: fc.dictionary(
        fc.nat(VOCABULARY - 1).map(String),
        fc.constantFrom(-100, -Number.MIN_VALUE, 100),
      ),
      seed: fc.constantFrom(-(2 ** 62), 0, 2 ** 62),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(numbers, async (fields) => {
      await system.complete({ prompt: 'aaaa aaaa', max_tokens: 4, logprobs: 1, ignore_eos: true, ...fields });
    }),
    { numRuns: runs(300) },
  );
});

test("no number in llama.cpp's ranges makes the sampler fail, and texts may be biased", async () => {
  const large = fc.constantFrom(-1e9, -3, -1e-9, 0, 1e-9, 3, 1e9);
  const numbers = fc.record(
    {
      temperature: large,
      repeat_penalty: fc.constantFrom(1e-9, 3, 1e9),
      frequency_penalty: large,
      presence_penalty: large,
      top_p: large,
      dry_base: large,
      dry_multiplier: fc.constantFrom(0, 1e9),
      logit_bias: fc.dictionary(
        fc.constantFrom('0', '7', 'a', ' aaa', ''),
        fc.oneof(large, fc.constant(false)),
      ),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(numbers, async (fields) => {
      const body = { model: 'default', prompt: 'aaaa aaaa', max_tokens: 4, ignore_eos: true, ...fields };
      const response = await system.worker.post(body, { headers: { 'x-dialect': 'llamacpp' } });
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    }),
    { numRuns: runs(200) },
  );
  const bias = { prompt: 'x', max_tokens: 3, logit_bias: [['q', 1e6]] };
  const biased = await system.worker.post(
    { model: 'default', ...bias },
    { headers: { 'x-dialect': 'llamacpp' } },
  );
  expect(await biased.json()).toMatchObject({ choices: [{ text: 'qqq' }] });
});

test('no combination of valid values makes the origin fail, plain or streamed', async () => {
  // Many choices are many times the work of one, and no other code.
  const left = new Set(['n', 'n_cmpl', 'best_of', 'prompt']);
  const values = Object.entries(FIELD_TABLE).flatMap(([field, { good, beside }]) =>
    left.has(field)
      ? []
      : good
          .filter((value) => JSON.stringify(value).length < 10_000)
          .map((value): Fields => ({ ...beside, [field]: value })),
  );
  const bodies = fc.array(fc.constantFrom(...values), { maxLength: 5 });
  const outcomes = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(bodies, async (fields) => {
      const body: Fields = Object.assign({ prompt: 'abc abc', temperature: 1 }, ...fields);
      const response = await system.post(body);
      const text = await response.text();
      expect([200, 400], `${text.slice(0, 300)} for ${JSON.stringify(body)}`).toContain(response.status);
      outcomes.set(response.status, (outcomes.get(response.status) ?? 0) + 1);
      if (response.status === 400) errorResponseBody.parse(JSON.parse(text));
      else if (body.stream === true) {
        // What forbids every token is found with the first one, when a stream has begun.
        const failures = payloadsOf(text).map(
          (payload) => errorResponseBody.safeParse(payload).data?.error.type,
        );
        expect(failures).not.toContain('server_error');
      } else expect(completionResponse.parse(JSON.parse(text)).choices).toHaveLength(1);
    }),
    { numRuns: COMBINATIONS, endOnFailure: true },
  );
  expect(outcomes.get(200)).toBeGreaterThan(COMBINATIONS / 4);
  expect(outcomes.get(400)).toBeGreaterThan(0);
});
