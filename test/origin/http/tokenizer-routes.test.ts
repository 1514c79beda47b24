import { describe, expect, test, vi } from 'vitest';
import { detokenizeResult, tokenizeResult, tokenizerInfo } from '../../../shared/tokenization.ts';
import { originForEachTest } from './running-origin.ts';

const origin = originForEachTest();

describe('the tokenizer', () => {
  test('tokenises as a prompt would be, and back', async () => {
    const prompt = 'hello <|endoftext|> é\n';
    const body = { model: 'tiny', prompt, addSpecialTokens: true };
    const { tokens, tokenStrings } = tokenizeResult.parse(
      await (await origin.call('/tokenize', { body })).json(),
    );
    expect(tokens).toEqual(
      origin.model.tokenizer.encode(prompt, { addSpecialTokens: true, parseSpecial: true }),
    );
    expect(tokenStrings).toHaveLength(tokens.length);
    expect(tokenStrings?.[0]).toBe('hello');
    const back = await origin.call('/detokenize', { body: { model: 'tiny', tokens } });
    expect(detokenizeResult.parse(await back.json()).text).toBe(prompt);
  });

  test('takes the spelling of special tokens as text on request', async () => {
    const prompt = 'hello <|endoftext|>';
    const body = { model: 'tiny', prompt, addSpecialTokens: false, parseSpecial: false };
    const { tokens } = tokenizeResult.parse(await (await origin.call('/tokenize', { body })).json());
    expect(tokens).toEqual(
      origin.model.tokenizer.encode(prompt, { addSpecialTokens: false, parseSpecial: false }),
    );
    expect(tokens).not.toContain(origin.model.tokenizer.idOf('<|endoftext|>'));
  });

  test('refuses a text that is longer than the longest tokens, before it is encoded', async () => {
    const run = vi.spyOn(origin.model.tokenizerThreads, 'run');
    const longest = 4 * 64 * origin.model.tokenizer.longestSpan;
    const body = { model: 'tiny', prompt: 'x'.repeat(longest + 1), addSpecialTokens: true };
    const refusal = { status: 400, code: 'string_above_max_length', param: 'prompt' };
    expect(await origin.error('/tokenize', { body })).toMatchObject(refusal);
    expect(run).not.toHaveBeenCalled();
  });

  test('returns no token strings unless they are requested', async () => {
    const body = { model: 'tiny', prompt: 'hello', addSpecialTokens: true, withStrings: false };
    const answer = await (await origin.call('/tokenize', { body })).json();
    expect(answer).not.toHaveProperty('tokenStrings');
  });

  test('returns the bytes of the tokens if they are requested', async () => {
    const body = { model: 'tiny', prompt: 'hello é', addSpecialTokens: false, withBytes: true };
    const { tokenBytes } = tokenizeResult.parse(await (await origin.call('/tokenize', { body })).json());
    expect(Buffer.from(tokenBytes?.join('') ?? '', 'latin1').toString('utf8')).toBe('hello é');
  });

  test.each([
    ['/tokenize', { prompt: 'hello', addSpecialTokens: true }],
    ['/detokenize', { tokens: [1] }],
  ])('%s takes a turn of the tenant in the thread', async (path, fields) => {
    const run = vi.spyOn(origin.model.tokenizerThreads, 'run');
    await origin.call(path, { body: { model: 'tiny', tenantId: 'acme', weight: 3, ...fields } });
    await origin.call(path, { body: { model: 'tiny', ...fields } });
    const callers = run.mock.calls.map(([, { tenantId, weight }]) => [tenantId, weight]);
    expect(callers).toEqual([
      ['acme', 3],
      ['', 1],
    ]);
  });

  test.each([
    ['/tokenize', 'prompt', { prompt: '7 '.repeat(300), addSpecialTokens: true }],
    ['/detokenize', 'tokens', { tokens: Array<number>(257).fill(1) }],
  ])('%s refuses more tokens than four contexts, and names their number', async (path, param, fields) => {
    const body = { model: 'tiny', ...fields };
    expect(await origin.error(path, { body })).toMatchObject({
      status: 400,
      param,
      message: expect.stringMatching(
        /: \d+ tokens\. Expected at most 256, 4 times the context of this model\.$/,
      ),
    });
  });

  test('/detokenize accepts four contexts', async () => {
    const body = { model: 'tiny', tokens: Array<number>(256).fill(1) };
    expect((await origin.call('/detokenize', { body })).status).toBe(200);
  });

  test('describes itself', async () => {
    const answer = await origin.call('/tokenizer_info?model=tiny');
    expect(tokenizerInfo.parse(await answer.json())).toMatchObject({
      model: 'tiny',
      contextLength: 64,
      bosToken: null,
      eosToken: '<|endoftext|>',
      addBosToken: false,
    });
  });

  test.each([
    ['/tokenize', { model: 'x', prompt: '', addSpecialTokens: true }, 404, 'model'],
    ['/detokenize', { model: 'tiny', tokens: [1, 99_999] }, 400, 'tokens[1]'],
    ['/detokenize', { model: 'tiny', tokens: [-1] }, 502, 'tokens.0'],
  ] as const)('%s refuses %j', async (path, body, status, param) => {
    expect(await origin.error(path, { body })).toMatchObject({ status, param });
  });
});
