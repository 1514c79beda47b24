import { describe, expect, test } from 'vitest';
import { plainPrompt } from '../../../origin/request/prompt.ts';
import { echoEvent } from '../../../origin/request/prompt-echo.ts';
import type { ServedModel } from '../../../origin/request/served-model.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { request } from '../../support/generation-request.ts';
import {
  byteLevelTokenizer,
  FIM_TOKENS,
  modelDirectory,
  sentencePieceDirectory,
} from '../tokenizer/fixtures.ts';
import { prepare, STAYS, servedModel } from './served-models.ts';

/** A prompt without text or ids continues the token that begins a new document. */

const withConfig = (config: object): ServedModel =>
  servedModel(
    modelDirectory({ 'tokenizer.json': byteLevelTokenizer(FIM_TOKENS), 'tokenizer_config.json': config }),
  );

const END = '<|endoftext|>';

/** The models, and the id of the token that begins a document. */
const MODELS: readonly (readonly [string, ServedModel, number])[] = [
  ['a tokenizer that adds BOS', servedModel(sentencePieceDirectory()), 1],
  ['a BOS that the tokenizer does not add', withConfig({ bos_token: '<|fim_prefix|>', eos_token: END }), 1],
  ['an end token only', withConfig({ bos_token: null, eos_token: END }), 0],
];

const CALLER = { tenantId: 'a', weight: 1, signal: STAYS };

const tokensOf = async (changes: Partial<GenerationRequest>, model: ServedModel) =>
  (await prepare(changes, model)).submission.prompts.map(({ tokens }) => [...tokens]);

describe.each(MODELS)('%s', (_, model, start) => {
  test('begins an empty prompt with one token, also between others and without special tokens', async () => {
    for (const addSpecialTokens of [true, false, 'always'] as const) {
      expect(await tokensOf({ prompts: [''], addSpecialTokens }, model)).toEqual([[start]]);
      const [first, second, third] = await tokensOf({ prompts: [[5], '', ['']], addSpecialTokens }, model);
      expect([first, second, third]).toEqual([[5], [start], [start]]);
    }
  });

  test('echoes nothing, and hides the token', async () => {
    const context = { request: request({}), model, caller: CALLER, param: 'prompt', budget: null };
    const { echo } = await plainPrompt('', context);
    const token = { id: start, bytes: '<s>', logprob: null, topLogprobs: null, hidden: true };
    const event = { type: 'prompt', prompt: 0, text: '', ids: [start], logprobs: [token] } as const;
    expect(echoEvent({ ...event, ids: [start], logprobs: [token] }, echo)).toEqual(event);
  });

  test.each(['joint', 'separate'] as const)('scores a text as a new document, %s', async (tokenization) => {
    const text = { addSpecialTokens: false, parseSpecial: true };
    const fields = { maxTokens: 0, promptTopLogprobs: 1, echo: true };
    for (const prompt of ['', ' \n']) {
      const context = { prompt, tokenization };
      const { submission } = await prepare({ ...fields, prompts: ['hello'], context }, model);
      const [{ tokens, logprobsFrom }] = submission.prompts as [(typeof submission.prompts)[0]];
      if (prompt === '') expect([...tokens]).toEqual([start, ...model.tokenizer.encode('hello', text)]);
      if (tokenization === 'joint') expect([tokens[0], logprobsFrom]).toEqual([start, 0]);
    }
  });
});

describe('a model without either', () => {
  const model = withConfig({});

  test.each([
    ['prompt', { prompts: [''] }],
    ['prompt[1]', { prompts: ['hello', ''] }],
    ['prompt', { prompts: ['hello'], context: { prompt: '', tokenization: 'joint' as const } }],
  ])('refuses an empty %s and says what to do', async (param, changes) => {
    expect(model.tokenizer.startId).toBeNull();
    await expect(prepare(changes, model)).rejects.toMatchObject({
      code: 'invalid_value',
      param,
      message: expect.stringContaining('Send at least one character, or the id of a token'),
    });
  });
});
