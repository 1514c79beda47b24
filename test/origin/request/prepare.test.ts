import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { reachableText } from '../../../origin/request/context-budget.ts';
import { Encoder } from '../../../origin/tokenizer/encoder.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { byteLevelDirectory, sentencePieceDirectory } from '../tokenizer/fixtures.ts';
import { prepare as prepareFor, servedModel } from './served-models.ts';

const CONTEXT = 64;
const model = servedModel(byteLevelDirectory(), CONTEXT);
const withBos = servedModel(sentencePieceDirectory(), CONTEXT);
const VOCABULARY = model.vocabularySize;
const ids = (count: number) => Array.from({ length: count }, (_, i) => 10 + (i % 90));

const prepare = (changes: Partial<GenerationRequest>, served = model) =>
  prepareFor(changes, served, { engineId: 'engine-1', receivedAt: 1000, drawSeed: () => 77 });
const promptOf = async (changes: Partial<GenerationRequest>, served = model) => {
  const { submission } = await prepare(changes, served);
  return Array.from(submission.prompts[0]?.tokens ?? []);
};
const maxTokensOf = async (changes: Partial<GenerationRequest>) =>
  (await prepare(changes)).submission.prompts[0]?.maxTokens;

describe('prompts', () => {
  const encode = (text: string) =>
    model.tokenizer.encode(text, { addSpecialTokens: true, parseSpecial: true });

  test('text, ids and mixtures become ids, parts in order', async () => {
    expect(await promptOf({ prompts: ['hello world'] })).toEqual(encode('hello world'));
    expect(await promptOf({ prompts: [[7, 8, 9]] })).toEqual([7, 8, 9]);
    expect(await promptOf({ prompts: [[7, 'hello', 9]] })).toEqual([7, ...encode('hello'), 9]);
  });

  test('several prompts stay separate, and `accepted` has the length of each', async () => {
    const { submission, preamble } = await prepare({ prompts: ['hello', [5, 6]], choices: 3 });
    expect(submission.prompts.map(({ tokens }) => tokens.length)).toEqual([1, 2]);
    expect(preamble).toEqual([{ type: 'accepted', model: 'tiny', promptTokens: [1, 2] }]);
  });

  test('`accepted` names the prompts that were cut', async () => {
    const { preamble } = await prepare({
      prompts: [
        [5, 6],
        [5, 6, 7],
      ],
      truncatePromptTokens: 2,
    });
    expect(preamble).toMatchObject([{ promptTokens: [2, 2], cutPrompts: [1] }]);
  });

  test('encodes no further prompt after the client disconnected', async () => {
    const leaving = new AbortController();
    const encoder = new Encoder(model.tokenizer);
    const encode = vi.spyOn(encoder, 'encode').mockImplementation(async () => {
      leaving.abort();
      return [5];
    });
    const prepared = prepareFor(
      { prompts: ['hello', 'world'] },
      { ...model, encoder },
      { signal: leaving.signal },
    );
    await expect(prepared).rejects.toBe(leaving.signal.reason);
    expect(encode).toHaveBeenCalledTimes(1);
  });

  test('BOS goes before text only, only first, and only when asked', async () => {
    expect((await promptOf({ prompts: ['hello'] }, withBos))[0]).toBe(1);
    expect(await promptOf({ prompts: [[9, 'hello']] }, withBos)).not.toContain(1);
    expect((await promptOf({ prompts: [['hello', 'hello']] }, withBos)).filter((id) => id === 1)).toEqual([
      1,
    ]);
    expect(await promptOf({ prompts: ['hello'], addSpecialTokens: false }, withBos)).not.toContain(1);
  });

  test("BOS is added always if asked, and counts for the echo's tokens", async () => {
    const always = { addSpecialTokens: 'always' } as const;
    const hello = withBos.tokenizer.encode('hello', { addSpecialTokens: false, parseSpecial: true });
    expect(await promptOf({ ...always, prompts: ['<s>hello'] }, withBos)).toEqual([1, 1, ...hello]);
    expect(await promptOf({ ...always, prompts: [['hello', 9]] }, withBos)).toEqual([1, ...hello, 9]);
    const { preamble } = await prepare({ ...always, prompts: ['<s>hello'] }, withBos);
    expect(preamble[0]).toMatchObject({ promptTokens: [2 + hello.length] });
  });

  test('encodes long texts like short ones', async () => {
    const text = 'hello world é '.repeat(1000);
    expect(await promptOf({ prompts: [text], truncatePromptTokens: 50 })).toEqual(encode(text).slice(-50));
  });
});

describe('token ids outside the vocabulary', () => {
  const sampling = (changes: object) => ({ sampling: { ...NEUTRAL_SAMPLING, ...changes } });
  test.each([
    ['prompt[1]', { prompts: [[1, VOCABULARY]] }],
    ['prompt[2][0]', { prompts: ['a', [1], [VOCABULARY, 1]] }],
    ['logit_bias', sampling({ logitBias: [[VOCABULARY, 1]] })],
    ['allowed_token_ids', sampling({ allowedTokenIds: [0, VOCABULARY + 5] })],
    ['stop_token_ids', { stopTokenIds: [VOCABULARY] }],
    ['logprob_token_ids', { topLogprobs: 0, logprobTokenIds: [1, VOCABULARY] }],
  ] as const)('in %s are a 400 that names it', async (param, changes) => {
    const failing = prepare(changes as Partial<GenerationRequest>);
    await expect(failing).rejects.toMatchObject({ status: 400, code: 'invalid_value', param });
    await expect(failing).rejects.toThrow(`'${param}'`);
    await expect(failing).rejects.toThrow(`0 to ${VOCABULARY - 1}`);
  });

  test('are refused in a text if the tokenizer has tokens that the model lacks', async () => {
    const last = model.tokenizer.spelling(VOCABULARY - 1);
    const narrow = { ...model, vocabularySize: VOCABULARY - 1 };
    expect(await promptOf({ prompts: [`hello ${last}`] })).toContain(VOCABULARY - 1);
    await expect(prepare({ prompts: ['hello', `hello ${last}`] }, narrow)).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'prompt[1]',
    });
  });

  test('the last id of the vocabulary is inside', async () => {
    expect(await promptOf({ prompts: [[VOCABULARY - 1]] })).toEqual([VOCABULARY - 1]);
  });
});

describe('the context', () => {
  const tooLong = { status: 400, code: 'context_length_exceeded', param: 'prompt' };

  test('a prompt that leaves one position gets one token', async () => {
    expect(await maxTokensOf({ prompts: [ids(CONTEXT - 1)], maxTokens: 100 })).toBe(1);
  });

  test('a prompt that fills it gets no token, and with error a 400', async () => {
    const full = [ids(CONTEXT)];
    for (const maxTokens of ['end', 1, 100] as const) {
      expect(await maxTokensOf({ prompts: full, maxTokens })).toBe(0);
      const failing = prepare({ prompts: full, maxTokens, contextOverflow: 'error' });
      await expect(failing).rejects.toMatchObject(tooLong);
    }
  });

  test('refuses a longer prompt, in the words that clients search for', async () => {
    const failing = prepare({ prompts: [ids(CONTEXT + 1)], maxTokens: 9 });
    await expect(failing).rejects.toMatchObject(tooLong);
    await expect(failing).rejects.toThrow(
      `maximum context length is 64 tokens, however you requested 74 tokens (65 in your prompt; 9 for the completion)`,
    );
  });

  test('names a lower bound as such if a text was not encoded to its end', async () => {
    const long = 'word '.repeat(50_000);
    const count =
      'requested at least (\\d+) tokens \\(at least (\\d+) in your prompt; 9 for the completion\\)';
    const cases: Partial<GenerationRequest>[] = [
      { prompts: [long] },
      { prompts: [['word', long]] },
      { prompts: [long], truncatePromptTokens: 40_000 },
      { prompts: ['word'], context: { prompt: long, tokenization: 'joint' } },
      { prompts: [long], context: { prompt: 'word', tokenization: 'separate' } },
    ];
    for (const fields of cases) {
      const failing = prepare({ ...fields, maxTokens: 9 });
      await expect(failing).rejects.toMatchObject({ code: 'context_length_exceeded' });
      await expect(failing).rejects.toThrow(new RegExp(count));
    }
  });

  test('a prompt that fills it can still be evaluated', async () => {
    expect(await maxTokensOf({ prompts: [ids(CONTEXT)], maxTokens: 0 })).toBe(0);
    const failing = prepare({ prompts: [ids(CONTEXT + 1)], maxTokens: 0 });
    await expect(failing).rejects.toMatchObject(tooLong);
    await expect(failing).rejects.toThrow('requested 65 tokens (65 in your prompt; 0 for the completion)');
  });

  test('lowers max_tokens if the sum does not fit, or refuses on request', async () => {
    expect(await maxTokensOf({ prompts: [ids(60)], maxTokens: 5 })).toBe(4);
    expect(await maxTokensOf({ prompts: [ids(60)], maxTokens: 4, contextOverflow: 'error' })).toBe(4);
    await expect(
      prepare({ prompts: [ids(60)], maxTokens: 5, contextOverflow: 'error' }),
    ).rejects.toMatchObject(tooLong);
  });

  test('max_tokens −1 means the rest of it', async () => {
    expect(await maxTokensOf({ prompts: [ids(10)], maxTokens: 'end' })).toBe(CONTEXT - 10);
    await expect(prepare({ prompts: [ids(CONTEXT + 1)], maxTokens: 'end' })).rejects.toMatchObject(tooLong);
  });

  test('truncation keeps the end of the prompt: k tokens, or what fits beside max_tokens', async () => {
    const long = ids(200);
    const cut = (changes: Partial<GenerationRequest>) => promptOf({ prompts: [long], ...changes });
    expect(await cut({ truncatePromptTokens: 5 })).toEqual(long.slice(-5));
    expect(await cut({ truncatePromptTokens: -1, maxTokens: 10 })).toEqual(long.slice(-(CONTEXT - 10)));
    expect(await cut({ truncatePromptTokens: -1, maxTokens: 0 })).toEqual(long.slice(-CONTEXT));
    expect(await cut({ truncatePromptTokens: -1, maxTokens: 'end' })).toEqual(long.slice(-(CONTEXT - 1)));
    expect(await cut({ truncatePromptTokens: -1, maxTokens: 9999 })).toEqual(long.slice(-1));
    await expect(cut({ truncatePromptTokens: 100 })).rejects.toMatchObject(tooLong);
  });

  test('a truncated text has the tokens of the whole text', async () => {
    const text = 'hello wörld, <|endoftext|> 👩‍👩‍👧 and so on\n'.repeat(3000);
    const whole = model.tokenizer.encode(text, { addSpecialTokens: true, parseSpecial: true });
    for (const k of [1, 7, 50]) {
      expect(await promptOf({ prompts: [text], truncatePromptTokens: k })).toEqual(whole.slice(-k));
    }
  });

  test('reads more of a truncated text than the kept tokens can cover', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(30), fc.integer({ min: 1, max: 9 }), (length, budget, span) => {
        const text = Array.from({ length }, (_, i) => String.fromCharCode(0x4e00 + i)).join('');
        const least = Math.min(length, 2 * budget * span);
        expect(text.endsWith(reachableText(text, 'end', span, budget))).toBe(true);
        expect(text.startsWith(reachableText(text, 'start', span, budget))).toBe(true);
        for (const kept of ['start', 'end'] as const) {
          expect(reachableText(text, kept, span, budget).length).toBeGreaterThanOrEqual(least);
          expect(reachableText(text, kept, span, budget).length).toBeLessThanOrEqual(
            4 * Math.max(budget, 1) * span,
          );
        }
      }),
    );
  });

  test('refuses a truncation to nothing', async () => {
    await expect(prepare({ truncatePromptTokens: 0 })).rejects.toMatchObject({
      status: 400,
      param: 'prompt',
    });
  });

  test('refuses a text that cannot fit before encoding it', async () => {
    const unread = { ...model, encoder: { encode: () => Promise.reject(new Error('tokenised')) } };
    const text = 'x'.repeat(CONTEXT * model.tokenizer.longestSpan + 1);
    await expect(prepare({ prompts: [text] }, unread as never)).rejects.toMatchObject(tooLong);
  });
});

describe('stops', () => {
  test('a stop that is exactly one special token also stops on its id', async () => {
    const { submission } = await prepare({
      stop: ['<|endoftext|>', '\n', '<|endoftext|> '],
      stopTokenIds: [9],
    });
    expect(submission.stop).toEqual(['<|endoftext|>', '\n', '<|endoftext|> ']);
    expect(submission.stopTokenIds).toEqual([9, 0]);
  });

  test('a stop that is an ordinary token does not', async () => {
    expect((await prepare({ stop: ['hello'] })).submission.stopTokenIds).toEqual([]);
  });
});

describe('the submission', () => {
  test('keeps a given seed, 0 included, and draws one otherwise', async () => {
    const seeded = (seed: number | null) => prepare({ sampling: { ...NEUTRAL_SAMPLING, seed } });
    expect((await seeded(0)).submission.sampling.seed).toBe(0);
    expect((await seeded(null)).submission.sampling.seed).toBe(77);
  });

  test('separates the caches of tenants and salts', async () => {
    const key = async (tenantId: string, cacheSalt: string) =>
      (await prepare({ tenantId, cacheSalt })).submission.cacheNamespace;
    const keys = [await key('a', ''), await key('b', ''), await key('a', 'b'), await key('ab', '')];
    expect(new Set(keys).size).toBe(4);
  });

  test('is interactive unless the Worker marks it as flex', async () => {
    expect((await prepare({})).submission.flex).toBe(false);
    expect((await prepare({ flex: true })).submission.flex).toBe(true);
  });

  test('has its own name in the engine and a deadline counted from the arrival', async () => {
    const { submission } = await prepare({ requestId: 'chosen by the caller', deadlineMs: 500 });
    expect(submission).toMatchObject({ requestId: 'engine-1', deadline: 1500 });
  });
});
