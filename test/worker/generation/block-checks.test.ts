import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import type { ParsedCompletion } from '../../../worker/dialects/parsed-completion.ts';
import { Generation } from '../../../worker/generation/generation.ts';
import { RecentBlocks } from '../../../worker/limits/recent-blocks.ts';
import { waitingGrowth } from '../limits/waiting-growth.ts';
import { ACCEPTED, TOKEN } from './short-generation.ts';

/** Milliseconds for a call of the limiter. */
const CALL_MS = 80;
const MAX_MS = 2_000;

/** A clock that the test turns. */
class Clock {
  now = 0;
  readonly #timers = new Set<{ readonly at: number; readonly then: () => void }>();

  readonly after = (ms: number, then: () => void): (() => void) => {
    const timer = { at: this.now + ms, then };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  async turnTo(end: number): Promise<void> {
    for (;;) {
      await setImmediate();
      const [next] = [...this.#timers].sort((a, b) => a.at - b.at);
      if (next === undefined || next.at > end) break;
      this.#timers.delete(next);
      this.now = next.at;
      next.then();
    }
    this.now = end;
  }
}

const parsed = {
  generation: { constraint: null, prompts: ['a'], choices: 1 },
  constraintField: null,
  promptIsListed: false,
} as Partial<ParsedCompletion> as ParsedCompletion;

/** Returns when streams of one key ended for their readers. The key was blocked at `blockedAt`. */
async function endsOf(startedAt: readonly number[], blockedAt: number, waits: boolean): Promise<number[]> {
  const clock = new Clock();
  const blocks = new RecentBlocks(() => clock.now);
  const ask = async () => {
    const block = clock.now >= blockedAt ? ('revoked' as const) : null;
    await new Promise<void>((resolve) => clock.after(CALL_MS, resolve));
    return block;
  };
  const ends: number[] = [];
  const start = async () => {
    const { growth } = waitingGrowth();
    const generation = new Generation({
      parsed,
      envelope: { id: 'cmpl-1', created: 0, model: 'm', fingerprint: 'fp' },
      hold: {
        watch: () => {},
        spend: (tokens) => (waits && tokens > 0 ? growth.until(tokens, false) : null),
        end: () => growth.end(),
        block: async () =>
          (await blocks.of('key', ask)) ? new ApiError('invalid_api_key', 'Revoked.') : null,
      },
      upstream: { name: 'fake' },
      send: async (signal) =>
        (async function* () {
          yield [ACCEPTED];
          if (waits) yield [TOKEN];
          await new Promise((_, reject) => signal.addEventListener('abort', reject));
        })(),
      onPromptTokens: async () => {},
      client: new AbortController().signal,
      timeoutMs: 60_000,
      after: clock.after,
      now: () => clock.now,
      waitUntil: () => {},
    });
    await generation.first;
    await generation.next().catch(() => ends.push(clock.now));
  };
  for (const at of startedAt) clock.after(at, () => void start());
  await clock.turnTo(blockedAt + 2 * MAX_MS);
  return ends;
}

test('an isolate whose clock has stepped back asks about blocks again', async () => {
  const clock = new Clock();
  clock.now = 60_000;
  const blocks = new RecentBlocks(() => clock.now);
  expect(await blocks.of('key', async () => null)).toBeNull();
  clock.now = 0;
  expect(await blocks.of('key', async () => 'revoked')).toBe('revoked');
});

test.each([
  ['a stream', [0], false],
  ['a stream that waits for tokens', [0], true],
  ['each of several streams that began together', [0, 0, 0], false],
  ['each of several streams that began one after the other', [0, 90, 390, 700], false],
])('%s ends within 2 s of the block of its key', async (_, startedAt, waits) => {
  for (let blockedAt = 720; blockedAt < 2_400; blockedAt += 30) {
    const ends = await endsOf(startedAt, blockedAt, waits);
    expect(ends).toHaveLength(startedAt.length);
    expect(Math.max(...ends) - blockedAt, `blocked at ${blockedAt}`).toBeLessThanOrEqual(MAX_MS);
  }
});
