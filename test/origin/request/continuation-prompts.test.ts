import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SubmittedPrompt } from '../../../origin/engine/messages.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { runs } from '../../support/random.ts';
import { byteLevelDirectory, sentencePieceDirectory } from '../tokenizer/fixtures.ts';
import { prepare, servedModel } from './served-models.ts';

const models = {
  'byte-level': servedModel(byteLevelDirectory()),
  BOS: servedModel(sentencePieceDirectory()),
};
const CONTEXT = 64;
type Model = (typeof models)['BOS'];

/** `_encode_pair` of lm-evaluation-harness for causal models, line by line. */
function encodePair(before: string, after: string, model: Model): readonly [number[], number[]] {
  const encode = (text: string) =>
    model.tokenizer.encode(text, { addSpecialTokens: true, parseSpecial: true });
  let [context, continuation] = [before, after];
  const spaces = context.length - context.trimEnd().length;
  if (spaces > 0) {
    continuation = context.slice(-spaces) + continuation;
    context = context.slice(0, -spaces);
  }
  const whole = encode(context + continuation);
  const contextIds = encode(context);
  return [contextIds, whole.slice(contextIds.length)];
}

type Context = NonNullable<GenerationRequest['context']>;
type Changes = Partial<GenerationRequest>;

const scoring = (prompt: Context['prompt'], prompts: Changes['prompts'], changes: Changes = {}): Changes => ({
  prompts: prompts ?? [],
  context: { prompt, tokenization: 'joint' },
  maxTokens: 0,
  promptTopLogprobs: 1,
  echo: true,
  ...changes,
});
const separate = (prompt: Context['prompt']): Changes => ({ context: { prompt, tokenization: 'separate' } });

/** Returns the tokens of each prompt, and the position whose logits give its first logprob. */
const prompted = async (changes: Changes, model: Model) =>
  (await prepare(changes, model)).submission.prompts.map(({ tokens, logprobsFrom }) => [
    [...tokens],
    logprobsFrom,
  ]);

const text = (minLength: number) =>
  fc
    .array(fc.constantFrom('h', 'hel', 'hell', 'lo', 'o', ' w', 'or', 'ld', ' ', '\n', '\u00a0', 'é'), {
      minLength,
      maxLength: 5,
    })
    .map((parts) => parts.join(''));

describe.each(Object.entries(models))('continuations with a %s tokenizer', (_, model) => {
  test('have the tokens and the boundary of lm-evaluation-harness', async () => {
    let merged = 0;
    let moved = 0;
    await fc.assert(
      fc.asyncProperty(text(0), fc.array(text(1), { minLength: 1, maxLength: 4 }), async (start, texts) => {
        const prompt = `hel${start}`;
        const pairs = texts.map((continuation) => encodePair(prompt, continuation, model));
        if (pairs.some(([, after]) => after.length === 0)) {
          merged += 1;
          await expect(prepare(scoring(prompt, texts), model)).rejects.toMatchObject({ status: 400 });
          return;
        }
        moved += prompt === prompt.trimEnd() ? 0 : 1;
        const expected = pairs.map(([before, after]) => [[...before, ...after], before.length - 1]);
        expect(await prompted(scoring(prompt, texts), model)).toEqual(expected);
      }),
      { numRuns: runs(400) },
    );
    expect([merged > 0, moved > runs(50)], `${merged} ${moved}`).toEqual([true, true]);
  });

  test('are encoded alone with the tokenization separate', async () => {
    const encode = (part: string, addSpecialTokens: boolean) =>
      model.tokenizer.encode(part, { addSpecialTokens, parseSpecial: true });
    const before = encode('hell ', true);
    const after = encode('o w', false);
    expect(await prompted(scoring('hell ', ['o w'], separate('hell ')), model)).toEqual([
      [[...before, ...after], before.length - 1],
    ]);
  });

  test('of token ids follow the ids or the unchanged text of the prompt', async () => {
    const before = model.tokenizer.encode('hell ', { addSpecialTokens: true, parseSpecial: true });
    expect(await prompted(scoring([5, 6], [[7], [8, 9]]), model)).toEqual([
      [[5, 6, 7], 1],
      [[5, 6, 8, 9], 1],
    ]);
    expect(await prompted(scoring('hell ', [[7]]), model)).toEqual([[[...before, 7], before.length - 1]]);
  });
});

const byteLevel = models['byte-level'];

test('the engine reports the tokens after the context only', async () => {
  const { submission, preamble } = await prepare(scoring('hello', [' world']), byteLevel);
  const [{ tokens, logprobsFrom = 0, echoFrom }] = submission.prompts as [SubmittedPrompt];
  expect(echoFrom).toBe(logprobsFrom + 1);
  expect(preamble).toEqual([{ type: 'accepted', model: 'tiny', promptTokens: [tokens.length] }]);
});

describe('a 400 names the field', () => {
  const VOCABULARY = byteLevel.vocabularySize;
  const long = 'a b'.repeat(CONTEXT);
  test.each([
    ['prompt', 'context_length_exceeded', scoring(long, ['hello'])],
    ['prompt', 'context_length_exceeded', scoring(new Array(CONTEXT).fill(5), [[7]])],
    ['prompt[1]', 'invalid_value', scoring([5, VOCABULARY], [[7]])],
    ['continuations[1]', 'context_length_exceeded', scoring('hello', [' a', long])],
    ['continuations[1]', 'context_length_exceeded', scoring([5], [[7], new Array(CONTEXT).fill(7)])],
    ['continuations[1]', 'context_length_exceeded', scoring('hello', [' a', 'x'.repeat(100_000)])],
    ['continuations[1][2]', 'invalid_value', scoring([5], [[7], [7, 8, VOCABULARY]])],
    // "hell" and "o" are the one token "hello".
    ['continuations[0]', 'invalid_value', scoring('hell', ['o'])],
  ])('%s: %s', async (param, code, changes) => {
    await expect(prepare(changes, byteLevel)).rejects.toMatchObject({ status: 400, code, param });
  });

  test('a prompt and a continuation that fill the context exactly are accepted', async () => {
    const [[ids]] = (await prompted(scoring([5], [new Array(CONTEXT - 1).fill(7)]), byteLevel)) as [
      [number[]],
    ];
    expect(ids).toHaveLength(CONTEXT);
  });

  test('the engine gets the tokens without a copy, because each continuation repeats the context', async () => {
    const { submission } = await prepare(scoring([5], [[7], [8]]), byteLevel);
    for (const { tokens } of submission.prompts) expect(tokens.buffer).toBeInstanceOf(SharedArrayBuffer);
  });
});
