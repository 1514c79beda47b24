import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Encoder } from '../../../origin/tokenizer/encoder.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { byteLevelDirectory } from './fixtures.ts';

const directory = byteLevelDirectory();
const tokenizer = Tokenizer.of(textsOf(directory));
const encoder = new Encoder(tokenizer);
const options = { addSpecialTokens: true, parseSpecial: true };
const callerOf = (tenantId: string) => ({ tenantId, signal: new AbortController().signal });
const caller = callerOf('a');

afterAll(() => encoder.close());

describe('Encoder', () => {
  test('short and long texts get the same tokens as the tokenizer itself', async () => {
    const text = 'hello world <|endoftext|> é👩‍👩‍👧 \ud800 ';
    for (const repeat of [1, 20, 2000]) {
      const long = text.repeat(repeat);
      expect(Array.from(await encoder.encode(long, options, caller))).toEqual(
        tokenizer.encode(long, options),
      );
    }
  });

  test('a long text uses the files that were read, not their present content', async () => {
    const replaced = byteLevelDirectory();
    const former = Tokenizer.of(textsOf(replaced));
    const own = new Encoder(former);
    writeFileSync(path.join(replaced, 'tokenizer.json'), '{');
    const text = 'hello world '.repeat(2000);
    expect(Array.from(await own.encode(text, options, caller))).toEqual(former.encode(text, options));
    await own.close();
  });

  test('results of many long texts reach their own callers', async () => {
    const texts = Array.from({ length: 6 }, (_, i) => `${i} hello `.repeat(1000 + 100 * i));
    const all = await Promise.all(texts.map((text) => encoder.encode(text, options, caller)));
    expect(all.map((ids) => Array.from(ids))).toEqual(texts.map((text) => tokenizer.encode(text, options)));
  });

  test('a tenant’s long text waits for at most one of another tenant', async () => {
    const done: string[] = [];
    const text = 'hello '.repeat(5000);
    const encode = async (tenantId: string) => {
      await encoder.encode(text, options, callerOf(tenantId));
      done.push(tenantId);
    };
    await Promise.all([...Array.from({ length: 5 }, () => encode('busy')), encode('quiet')]);
    expect(done).toEqual(['busy', 'quiet', 'busy', 'busy', 'busy', 'busy']);
  });

  test('a tenant’s short text waits for at most one of another tenant', async () => {
    const done: string[] = [];
    const encode = async (tenantId: string) => {
      await encoder.encode('hello '.repeat(600), options, callerOf(tenantId));
      done.push(tenantId);
    };
    await Promise.all([...Array.from({ length: 5 }, () => encode('busy')), encode('quiet')]);
    expect(done).toEqual(['busy', 'quiet', 'busy', 'busy', 'busy', 'busy']);
  });

  test('does not encode a long text whose client disconnected', async () => {
    const leaving = new AbortController();
    const first = encoder.encode('hello '.repeat(20_000), options, caller);
    const left = encoder.encode('hello '.repeat(20_000), options, { ...caller, signal: leaving.signal });
    leaving.abort();
    await expect(left).rejects.toBe(leaving.signal.reason);
    await first;
  });

  test.each([
    ['a long text is', ['hello world '.repeat(10_000)], 1],
    ['many short ones are', Array<string>(40).fill('hello world '.repeat(300)), 30],
  ])('the calling thread goes on while %s tokenised', async (_, texts, least) => {
    const encoding = (async () => {
      for (const text of texts) await encoder.encode(text, options, caller);
    })();
    let turns = 0;
    const turn = () => {
      turns += 1;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    await encoding;
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(least);
  });

  test('a thread that ends fails its text and is replaced', async () => {
    const texts = [1, 2].map(() => encoder.encode('hello '.repeat(50_000), options, caller));
    const failed = Promise.all(
      texts.map((waiting) => expect(waiting).rejects.toThrow('the tokenizer thread ended')),
    );
    await encoder.close();
    await failed;
    const text = 'hello '.repeat(2000);
    expect(Array.from(await encoder.encode(text, options, caller))).toEqual(tokenizer.encode(text, options));
  });
});
