import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PrefixStore, storedChunkBytes } from '../../../../origin/engine/kv/prefix-store.ts';
import { TokenScores } from '../../../../origin/engine/kv/token-scores.ts';
import type { KvBytes } from '../../../../origin/model/model-runner.ts';
import { MAX_TOP_LOGPROBS } from '../../../../shared/logprob.ts';

const CHUNK = 2;
/** Every byte of a slot's KV is the slot's number. */
const kvBytes: KvBytes = {
  positionBytes: 1,
  read: (slot, _, __, bytes) => bytes.fill(slot),
  write: () => {},
};
const CHUNK_BYTES = storedChunkBytes({ chunk: CHUNK, kvBytes });
const storeOf = (budgetBytes: number) => new PrefixStore({ chunk: CHUNK, kvBytes, budgetBytes });

/** Scores of a whole prompt, which one number identifies. */
function scoresOf(prompt: Int32Array, number: number): TokenScores {
  const scores = new TokenScores(prompt.length, MAX_TOP_LOGPROBS);
  for (let at = 0; at < prompt.length; at++) scores.set(at, { logprob: number + at, top: [[at, number]] });
  return scores;
}

/** The same rules with a list of whole prefixes, searched from its start. */
class PlainStore {
  /** Least recently used first. */
  #prefixes: { readonly name: string; readonly kv: number; score: number | null; next: number }[] = [];
  readonly #room: number;

  constructor(room: number) {
    this.#room = room;
  }

  lengthOf(namespace: string, prompt: readonly number[], limit: number): number {
    let length = 0;
    while (length + CHUNK <= limit && this.#has(namespace, prompt, length + CHUNK)) length += CHUNK;
    return length;
  }

  find(
    namespace: string,
    prompt: readonly number[],
    limit: number,
  ): (readonly [number, number | null, number])[] {
    const end = this.lengthOf(namespace, prompt, limit);
    this.#use(namespace, prompt, end);
    return this.#names(namespace, prompt, end).map((name) => {
      const { kv, score, next } = this.#prefixes.find((one) => one.name === name)!;
      return [kv, score, next];
    });
  }

  add(namespace: string, prompt: readonly number[], end: number, kv: number, score: number | null): void {
    const before = this.find(namespace, prompt, end).length * CHUNK;
    const name = this.#names(namespace, prompt, end).at(-1)!;
    const next = score === null ? -1 : (prompt[end] ?? -1);
    if (before === end) {
      const known = this.#prefixes.find((one) => one.name === name)!;
      if (score !== null && (known.score === null || next >= 0)) Object.assign(known, { score, next });
      return;
    }
    if (before !== end - CHUNK) return;
    if (this.#prefixes.length === this.#room) {
      const kept = this.#names(namespace, prompt, before);
      if (this.#prefixes.length === 0 || kept.includes(this.#prefixes[0]!.name)) return;
      this.#prefixes.shift();
    }
    this.#prefixes.push({ name, kv, score, next });
    this.#use(namespace, prompt, end);
  }

  drop(namespace: string, prompt: readonly number[]): void {
    if (prompt.length < CHUNK) return;
    const [name] = this.#names(namespace, prompt, CHUNK);
    this.#prefixes = this.#prefixes.filter((one) => one.name !== name && !one.name.startsWith(`${name} `));
  }

  #names(namespace: string, prompt: readonly number[], end: number): string[] {
    const ends = Array.from({ length: end / CHUNK }, (_, index) => (index + 1) * CHUNK);
    return ends.map((at) => `${namespace}: ${prompt.slice(0, at).join(' ')}`);
  }

  #has(namespace: string, prompt: readonly number[], end: number): boolean {
    const name = this.#names(namespace, prompt, end).at(-1);
    return this.#prefixes.some((one) => one.name === name);
  }

  /** The last chunk first, so that a chunk is older than those before it. */
  #use(namespace: string, prompt: readonly number[], end: number): void {
    for (const name of this.#names(namespace, prompt, end).toReversed()) {
      const used = this.#prefixes.find((one) => one.name === name)!;
      this.#prefixes = [...this.#prefixes.filter((one) => one !== used), used];
    }
  }
}

const someSteps = fc.array(
  fc.record({
    namespace: fc.constantFrom('a', 'b'),
    // Few different ids, so that prompts share prefixes; 65,536 differs from 0 in its upper half only.
    prompt: fc.array(fc.constantFrom(0, 1, 65_536), { minLength: CHUNK, maxLength: 5 * CHUNK }),
    share: fc.nat(100),
    action: fc.constantFrom('find', 'add', 'add', 'score', 'score', 'drop'),
  }),
  { minLength: 20, maxLength: 200, size: 'max' },
);

describe('the prefix store', () => {
  it('finds, keeps and evicts what a plain list of prefixes would, within its budget', () => {
    let evicted = 0;
    fc.assert(
      fc.property(someSteps, fc.nat(12), (steps, room) => {
        const budgetBytes = room * CHUNK_BYTES + (CHUNK_BYTES - 1);
        const store = storeOf(budgetBytes);
        const plain = new PlainStore(room);
        for (const [number, { namespace, prompt, share, action }] of steps.entries()) {
          const ids = Int32Array.from(prompt);
          const length = plain.lengthOf(namespace, prompt, prompt.length);
          if (action === 'drop') {
            if (share >= 20) continue;
            store.drop(namespace, ids);
            plain.drop(namespace, prompt);
          } else if (action === 'find') {
            const limit = Math.floor((share / 100) * prompt.length);
            const found = store.find(namespace, ids, limit).map(({ kv, scores, scored, next }, index) => {
              const { logprob, top } = scores.get(0, MAX_TOP_LOGPROBS);
              const score = scored ? logprob - index * CHUNK : null;
              if (scored) expect(top).toEqual([[index * CHUNK, score]]);
              if (next >= 0) expect(scores.get(CHUNK, 0).logprob).toBe(logprob + CHUNK);
              return [kv[0], score, next];
            });
            expect(found).toEqual(plain.find(namespace, prompt, limit));
          } else {
            const whole = Math.floor(prompt.length / CHUNK);
            const end = Math.min(whole, 1 + Math.floor((share / 101) * (length / CHUNK + 2))) * CHUNK;
            const score = action === 'score' ? number : null;
            store.add(number, namespace, ids, end, score === null ? null : scoresOf(ids, score));
            plain.add(namespace, prompt, end, number, score);
          }
          expect(store.status.bytes).toBeLessThanOrEqual(budgetBytes);
        }
        evicted += store.status.evictedChunks;
      }),
      { numRuns: 200 },
    );
    expect(evicted).toBeGreaterThan(500);
  });

  it('stores no more of a prompt than fits, and keeps its beginning', () => {
    const store = storeOf(2 * CHUNK_BYTES);
    const prompt = Int32Array.of(1, 2, 3, 4, 5, 6);
    for (const end of [2, 4, 6]) store.add(0, '', prompt, end, null);
    expect(store.find('', prompt, 6)).toHaveLength(2);
    expect(store.find('other', prompt, 6)).toHaveLength(0);
    // Shorter than a chunk, which cannot be found.
    expect(store.find('', prompt, 1)).toHaveLength(0);
    expect(store.status).toMatchObject({ hits: 1, misses: 1 });
    expect(store.status).toMatchObject({ storedChunks: 2, evictedChunks: 0 });
  });
});
