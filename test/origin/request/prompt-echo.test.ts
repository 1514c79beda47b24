import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { wireTokenLogprob } from '../../../origin/engine/token-logprob.ts';
import type { ServedModel } from '../../../origin/request/served-model.ts';
import type { EventOf } from '../../../shared/generation.ts';
import {
  byteLevelDirectory,
  byteLevelTokenizer,
  modelDirectory,
  sentencePieceDirectory,
  unigramTokenizer,
} from '../tokenizer/fixtures.ts';
import { prepare, servedModel } from './served-models.ts';

/** The `prompt` event as the engine makes it of the bytes of tokens; special ones are hidden. */
function eventOf(ids: readonly number[], { tokenizer }: ServedModel): EventOf<'prompt'> {
  const { tokenBytes } = tokenizer;
  const scored = { logprob: -1, top: ids.slice(0, 2).map((id) => [id, -1] as const) };
  const tokens = ids.map((id) => wireTokenLogprob(tokenBytes, id, scored, tokenBytes.special[id] === 1));
  const shown = tokens.filter(({ hidden }) => !hidden).map(({ bytes }) => Buffer.from(bytes, 'latin1'));
  return {
    type: 'prompt',
    prompt: 0,
    text: Buffer.concat(shown).toString(),
    ids: [...ids],
    logprobs: tokens,
  };
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
    const { submission, restore } = await prepare({ prompts: [prompt], ...changes }, model);
    const event = restore(eventOf([...(submission.prompts[0]?.tokens ?? [])], model));
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
  const { restore } = await prepare({ prompts: [hello] }, model);
  expect(restore(eventOf(hello, model))).toMatchObject({ text: 'hello' });
});

test.each(['hello', ' hello', '  w', 'é'])(
  'a byte-level vocabulary with a space before it: %j',
  async (prompt) => {
    const pre_tokenizer = { type: 'ByteLevel', add_prefix_space: true, use_regex: true };
    const files = { 'tokenizer.json': byteLevelTokenizer([], { pre_tokenizer }) };
    const model = servedModel(modelDirectory(files));
    const { submission, restore } = await prepare({ prompts: [prompt] }, model);
    expect(restore(eventOf([...(submission.prompts[0]?.tokens ?? [])], model))).toMatchObject({
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
    const { submission, restore } = await prepare({ prompts: [prompt], addSpecialTokens }, model);
    return { restore, event: eventOf([...(submission.prompts[0]?.tokens ?? [])], model) };
  };

  test.each([hello, ownBos, twoBos, turns])('in a text are echoed: $prompt', async (sent) => {
    const { restore, event } = await engineEvent(sent);
    const { logprobs: _, ...unscored } = event;
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
    const { restore } = await prepare({ prompts: [ids] }, byteLevel);
    expect(restore(eventOf(ids, byteLevel))).toMatchObject({ text: 'hello world' });
  });
});

test('echoes a prompt as written although the tokenizer rewrites it', async () => {
  const files = { 'tokenizer.json': byteLevelTokenizer([], { normalizer: { type: 'NFC' } }) };
  const model = servedModel(modelDirectory(files));
  const { submission, restore } = await prepare({ prompts: ['e\u0301'] }, model);
  const { logprobs: _, ...event } = eventOf([...(submission.prompts[0]?.tokens ?? [])], model);
  expect(event.text).toBe('\u00e9');
  expect(restore(event)).toMatchObject({ text: 'e\u0301' });
});
