import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PrefixStore } from '../../../../origin/engine/kv/prefix-store.ts';

const CHUNK = 2;
const CHUNK_BYTES = 8;

/** The same rules with a list of whole prefixes, searched from its start. */
class PlainStore {
  /** Least recently used first. */
  #prefixes: { readonly name: string; readonly number: number }[] = [];
  readonly #room: number;

  constructor(room: number) {
    this.#room = room;
  }

  lengthOf(namespace: string, prompt: readonly number[], limit: number): number {
    let length = 0;
    while (length + CHUNK <= limit && this.#has(namespace, prompt, length + CHUNK)) length += CHUNK;
    return length;
  }

  numbers(namespace: string, prompt: readonly number[], start: number, end: number): number[] {
    this.#use(namespace, prompt, end);
    const names = this.#names(namespace, prompt, end).slice(start / CHUNK);
    return names.map((name) => this.#prefixes.find((one) => one.name === name)!.number);
  }

  add(namespace: string, prompt: readonly number[], end: number, number: number): boolean {
    const before = this.lengthOf(namespace, prompt, end);
    this.#use(namespace, prompt, before);
    if (before !== end - CHUNK) return false;
    if (this.#prefixes.length === this.#room) {
      const kept = this.#names(namespace, prompt, before);
      if (this.#prefixes.length === 0 || kept.includes(this.#prefixes[0]!.name)) return false;
      this.#prefixes.shift();
    }
    this.#prefixes.push({ name: this.#names(namespace, prompt, end).at(-1)!, number });
    this.#use(namespace, prompt, end);
    return true;
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
    adds: fc.boolean(),
  }),
  { minLength: 20, maxLength: 200, size: 'max' },
);

describe('the prefix store', () => {
  it('finds, keeps and evicts what a plain list of prefixes would, within its budget', () => {
    let evicted = 0;
    fc.assert(
      fc.property(someSteps, fc.nat(12), (steps, room) => {
        const budgetBytes = room * CHUNK_BYTES + (CHUNK_BYTES - 1);
        const store = new PrefixStore({ chunk: CHUNK, chunkBytes: CHUNK_BYTES, budgetBytes });
        const plain = new PlainStore(room);
        for (const [number, { namespace, prompt, share, adds }] of steps.entries()) {
          const ids = Int32Array.from(prompt);
          const whole = Math.floor(prompt.length / CHUNK);
          const length = store.lengthOf(namespace, ids, prompt.length);
          expect(length).toBe(plain.lengthOf(namespace, prompt, prompt.length));
          if (adds) {
            const end = Math.min(whole, 1 + Math.floor((share / 101) * (length / CHUNK + 2))) * CHUNK;
            const bytes = store.add(namespace, ids, end);
            expect(bytes !== null).toBe(plain.add(namespace, prompt, end, number));
            bytes?.fill(number);
          } else {
            const start = Math.floor((share / 101) * (length / CHUNK + 1)) * CHUNK;
            const chunks = store.take(namespace, ids, start, length);
            expect(chunks.map((bytes) => bytes[0])).toEqual(plain.numbers(namespace, prompt, start, length));
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
    const store = new PrefixStore({ chunk: 2, chunkBytes: 8, budgetBytes: 16 });
    const prompt = Int32Array.of(1, 2, 3, 4, 5, 6);
    expect([2, 4, 6].map((end) => store.add('', prompt, end) !== null)).toEqual([true, true, false]);
    expect(store.lengthOf('', prompt, 6)).toBe(4);
  });
});
