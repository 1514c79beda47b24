import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { TokenizerThread, TokenizerThreads } from '../../../origin/tokenizer/tokenizer-thread.ts';
import { byteLevelDirectory } from './fixtures.ts';

const tokenizer = Tokenizer.of(textsOf(byteLevelDirectory()));
const thread = new TokenizerThread({ parts: tokenizer.parts, background: true });
afterAll(() => thread.close());

const callerOf = (tenantId: string) => ({ tenantId, signal: new AbortController().signal });
const options = { addSpecialTokens: false, parseSpecial: true };
const parsed = (json: Uint8Array) => JSON.parse(new TextDecoder().decode(json)) as unknown;

/** 19 is the lowest priority. */
const lowerThan = (niceness: number): number => Math.min(19, niceness + 10);

/** Number of this process's threads with the low priority; Linux only. */
const lowThreads = () =>
  readdirSync('/proc/self/task').filter((id) => {
    const stat = readFileSync(`/proc/self/task/${id}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]) === lowerThan(getPriority());
  }).length;

const PRIORITIES = path.join(import.meta.dirname, 'thread-priorities.ts');

describe('the tokenizer thread', () => {
  test('decodes as the tokenizer itself', async () => {
    const text = 'hello world <|endoftext|> é👩‍👩‍👧';
    const tokens = tokenizer.encode(text, options);
    const json = await thread.run({ kind: 'detokenize', tokens }, callerOf('a'));
    expect(parsed(json)).toEqual({ text: tokenizer.decode(tokens, { skipSpecialTokens: false }) });
  });

  test('serves tenants in turn: a job waits for at most one job of another tenant', async () => {
    const done: string[] = [];
    const tokens = Array<number>(20_000).fill(5);
    const decode = async (tenantId: string) => {
      await thread.run({ kind: 'detokenize', tokens }, callerOf(tenantId));
      done.push(tenantId);
    };
    await Promise.all([...Array.from({ length: 5 }, () => decode('flood')), decode('other')]);
    expect(done.indexOf('other')).toBe(1);
  });

  test('lets small jobs, one after the other, wait for only one large job of another tenant', async () => {
    const done: string[] = [];
    const decode = async (tenantId: string, ids: number) => {
      await thread.run({ kind: 'detokenize', tokens: Array<number>(ids).fill(5) }, callerOf(tenantId));
      done.push(tenantId);
    };
    const large = Array.from({ length: 3 }, () => decode('large', 20_000));
    for (let job = 0; job < 4; job += 1) await decode('small', 5_000);
    await Promise.all(large);
    expect(done).toEqual(['large', 'small', 'small', 'small', 'small', 'large', 'large']);
  });

  test('rests after a job as long as its request and answer are, but not before its answer', async () => {
    const rests: number[] = [];
    const rested = Promise.withResolvers<void>();
    const paced = new TokenizerThread({ parts: tokenizer.parts, background: true }, (bytes) => {
      rests.push(bytes);
      return rested.promise;
    });
    const first = await paced.run({ kind: 'detokenize', tokens: [1, 2, 3] }, callerOf('a'));
    expect(rests).toEqual([3 * 6 + first.length]);
    let done = false;
    const second = paced.run({ kind: 'detokenize', tokens: [1] }, callerOf('b')).finally(() => {
      done = true;
    });
    await thread.run({ kind: 'detokenize', tokens: [1] }, callerOf('a'));
    expect(done).toBe(false);
    rested.resolve();
    await second;
    await paced.close();
  });

  test('serves short texts while a long one has its thread', async () => {
    const rested = Promise.withResolvers<void>();
    const threads = new TokenizerThreads({ parts: tokenizer.parts, background: true }, async (bytes) => {
      if (bytes > 2 ** 16) await rested.promise;
    });
    const done: number[] = [];
    const decode = async (ids: number) => {
      await threads.run({ kind: 'detokenize', tokens: Array<number>(ids).fill(5) }, callerOf('a'));
      done.push(ids);
    };
    await decode(20_000);
    const second = decode(20_000);
    for (let job = 0; job < 3; job += 1) await decode(10);
    rested.resolve();
    await second;
    expect(done).toEqual([20_000, 10, 10, 10, 20_000]);
    await threads.close();
  });

  test('lets this thread go on while it decodes', async () => {
    const tokens = Array<number>(300_000).fill(5);
    let turns = 0;
    const turn = () => {
      turns += 1;
      next = setImmediate(turn);
    };
    const decoding = thread.run({ kind: 'detokenize', tokens }, callerOf('a'));
    let next = setImmediate(turn);
    await decoding;
    clearImmediate(next);
    expect(turns).toBeGreaterThan(1);
  });

  test.runIf(process.platform === 'linux')('has a low priority, and no other thread has', async () => {
    const lowAfter = async (started: TokenizerThread) => {
      await started.run({ kind: 'detokenize', tokens: [] }, callerOf('a'));
      onTestFinished(() => started.close());
      return lowThreads();
    };
    const before = lowThreads();
    const { parts } = tokenizer;
    expect(await lowAfter(new TokenizerThread({ parts, background: true }))).toBe(before + 1);
    expect(await lowAfter(new TokenizerThread({ parts, background: false }))).toBe(before + 1);
  });

  test.runIf(process.platform === 'linux')('has a lower priority than a process with a low one', () => {
    const node = [process.execPath, PRIORITIES, byteLevelDirectory()];
    const told = execFileSync('nice', ['-n', '12', ...node], { encoding: 'utf8' });
    const own = Math.min(19, getPriority() + 12);
    expect(new Set(JSON.parse(told) as number[])).toEqual(new Set([own, lowerThan(own)]));
  });
});
