import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PromptLogprobs } from '../../../origin/engine/kv/prompt-logprobs.ts';
import type { PromptResult } from '../../../origin/engine/messages.ts';
import { textOf } from '../../../origin/tokenizer/token-bytes.ts';
import type { EventOf } from '../../../shared/generation.ts';
import {
  byteLevelDirectory,
  byteLevelTokenizer,
  modelDirectory,
  sentencePieceDirectory,
  unigramTokenizer,
} from '../tokenizer/fixtures.ts';
import { prepare, servedModel } from './served-models.ts';

/** What the engine computes of a prompt with two logprobs per token. */
function resultOf(ids: readonly number[]): PromptResult {
  const logprobs = new PromptLogprobs(ids.length, 2);
  const top = ids.slice(0, 2).map((id) => [id, -1] as const);
  ids.forEach((_, at) => {
    logprobs.set(at, { logprob: -1, top, rank: 1 });
  });
  return { type: 'prompt', prompt: 0, scores: { bytes: logprobs.bytes, top: 2, first: 0, rows: [] } };
}

const models = {
  'a prepended ▁': servedModel(sentencePieceDirectory()),
  'a prepended ▁ and a model that sees BOS in the text': servedModel(
    sentencePieceDirectory({ add_bos_token: false }),
  ),
  Metaspace: servedModel(
    modelDirectory({
      'tokenizer.json': unigramTokenizer(),
      'tokenizer_config.json': { bos_token: '<s>', eos_token: '</s>' },
    }),
  ),
};

describe.each(Object.entries(models))('%s', (_, model) => {
  const told = async (prompt: string, changes = {}) => {
    const { submission, restore } = await prepare(
      { promptTopLogprobs: 2, prompts: [prompt], ...changes },
      model,
    );
    const event = restore(resultOf([...(submission.prompts[0]?.tokens ?? [])]));
    if (event.type !== 'prompt') throw new Error(event.type);
    return event;
  };

  test('echoes a prompt and its tokens as written', async () => {
    const unit = fc.constantFrom(...' helowrd');
    await fc.assert(
      fc.asyncProperty(fc.string({ unit, minLength: 1, maxLength: 12 }), async (text) => {
        const { text: shown, logprobs: tokens = [] } = await told(text);
        expect(shown).toBe(text);
        const visible = tokens.filter(({ hidden }) => !hidden);
        expect(visible.map(({ bytes }) => bytes).join('')).toBe(text);
        for (const { id, bytes, topLogprobs } of tokens) {
          for (const [other, name] of topLogprobs ?? []) if (other === id) expect(name).toBe(bytes);
        }
      }),
    );
  });

  test('keeps the space at the start of a cut prompt', async () => {
    expect((await told('hello hello hello', { truncatePromptTokens: 1 })).text).toBe(' hello');
  });
});

test('echoes a prompt of ids as its text', async () => {
  const model = models['a prepended ▁'];
  const hello = model.tokenizer.encode('hello', { addSpecialTokens: true, parseSpecial: true });
  const { restore } = await prepare({ promptTopLogprobs: 2, prompts: [hello] }, model);
  expect(restore(resultOf(hello))).toMatchObject({ text: 'hello' });
});

test.each(['hello', ' hello', '  w', 'é'])(
  'a byte-level vocabulary with a space before it: %j',
  async (prompt) => {
    const pre_tokenizer = { type: 'ByteLevel', add_prefix_space: true, use_regex: true };
    const files = { 'tokenizer.json': byteLevelTokenizer([], { pre_tokenizer }) };
    const model = servedModel(modelDirectory(files));
    const { submission, restore } = await prepare({ promptTopLogprobs: 2, prompts: [prompt] }, model);
    expect(restore(resultOf([...(submission.prompts[0]?.tokens ?? [])]))).toMatchObject({
      text: prompt,
    });
  },
);

describe('special tokens', () => {
  const sentencePiece = models['a prepended ▁'];
  const byteLevel = servedModel(byteLevelDirectory());
  const hello = { model: sentencePiece, prompt: 'hello', addSpecialTokens: true };
  const ownBos = { ...hello, prompt: '<s>hello' };
  const twoBos = { ...ownBos, addSpecialTokens: 'always' } as const;
  const turns = { ...hello, model: byteLevel, prompt: '<|endoftext|>hello<|endoftext|> world' };

  const engineEvent = async ({ model, prompt, addSpecialTokens }: typeof hello | typeof twoBos) => {
    const { submission, restore } = await prepare(
      { promptTopLogprobs: 2, prompts: [prompt], addSpecialTokens },
      model,
    );
    return { restore, event: resultOf([...(submission.prompts[0]?.tokens ?? [])]) };
  };

  test.each([hello, ownBos, twoBos, turns])('in a text are echoed: $prompt', async (sent) => {
    const { restore, event } = await engineEvent(sent);
    const { scores: _, ...unscored } = event;
    expect(restore(unscored)).toMatchObject({ text: sent.prompt });
    expect(restore(event)).toMatchObject({ text: sent.prompt });
  });

  test.each([
    { ...hello, hidden: ['<s>'] },
    { ...ownBos, hidden: [] },
    { ...twoBos, hidden: ['<s>'] },
    { ...turns, hidden: [] },
  ])('are hidden only if the tokenizer added them: $prompt', async ({ hidden, ...sent }) => {
    const { restore, event } = await engineEvent(sent);
    const { logprobs: tokens = [] } = restore(event) as EventOf<'prompt'>;
    expect(tokens.filter((token) => token.hidden).map(({ bytes }) => bytes)).toEqual(hidden);
  });

  test('of a prompt of ids stay hidden', async () => {
    const ids = byteLevel.tokenizer.encode(turns.prompt, { addSpecialTokens: false, parseSpecial: true });
    const { restore } = await prepare({ promptTopLogprobs: 2, prompts: [ids] }, byteLevel);
    expect(restore(resultOf(ids))).toMatchObject({ text: 'hello world' });
  });
});

test('echoes a prompt as written although the tokenizer rewrites it', async () => {
  const files = { 'tokenizer.json': byteLevelTokenizer([], { normalizer: { type: 'NFC' } }) };
  const model = servedModel(modelDirectory(files));
  const { submission, restore } = await prepare({ promptTopLogprobs: 2, prompts: ['e\u0301'] }, model);
  const ids = submission.prompts[0]?.tokens ?? [];
  expect(textOf(model.tokenizer.tokenBytes, ids, false)).toBe('\u00e9');
  const { scores: _, ...event } = resultOf([...ids]);
  expect(restore(event)).toMatchObject({ text: 'e\u0301' });
});
