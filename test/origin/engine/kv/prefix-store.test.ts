import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { prefixStoreRoom } from '../../../../origin/engine/kv/prefix-memory.ts';
import { PrefixStore, type StoredPrompt } from '../../../../origin/engine/kv/prefix-store.ts';
import { PromptLogprobs } from '../../../../origin/engine/kv/prompt-logprobs.ts';
import type { KvBytes } from '../../../../origin/model/model-runner.ts';
import { MAX_TOP_LOGPROBS } from '../../../../shared/logprob.ts';
import { runs } from '../../../support/random.ts';

const CHUNK = 2;
const VOCABULARY = 20;
/** Every byte of a slot's KV is the slot's number. */
const kvBytes: KvBytes = {
  positionBytes: 1,
  read: (slot, _, __, bytes) => bytes.fill(slot),
  write: () => {},
  discard: () => {},
};
const shapeOf = (budgetBytes: number) => ({ chunk: CHUNK, kvBytes, vocabularySize: VOCABULARY, budgetBytes });
const { chunkBytes, logitsBytes } = prefixStoreRoom(shapeOf(0));

/** Scores of a whole prompt, which one number identifies. */
function scoresOf(prompt: Int32Array, number: number): PromptLogprobs {
  const logprobs = new PromptLogprobs(prompt.length, MAX_TOP_LOGPROBS);
  for (let at = 0; at < prompt.length; at++) logprobs.set(at, { logprob: number + at, top: [[at, number]] });
  return logprobs;
}

interface PlainChunk {
  readonly name: string;
  readonly kv: readonly number[];
  score: number | null;
  next: number;
  logits: number | null;
}

interface PlainPrompt {
  readonly namespace: string;
  readonly tokens: readonly number[];
  readonly chunks: PlainChunk[];
}

/** The same rules with lists that are searched from their start. */
class PlainStore {
  /** Least recently used first. */
  #chunks: PlainChunk[] = [];
  #withLogits: PlainChunk[] = [];
  readonly #room: { readonly chunks: number; readonly logits: number };

  constructor(room: { readonly chunks: number; readonly logits: number }) {
    this.#room = room;
  }

  open(namespace: string, tokens: readonly number[], limit: number): PlainPrompt {
    const chunks: PlainChunk[] = [];
    for (const end of endsOf(tokens)) {
      const chunk = end <= limit ? this.#find(nameOf(namespace, tokens, end)) : undefined;
      if (chunk === undefined) break;
      chunks.push(chunk);
    }
    this.#use(chunks);
    const last = chunks.at(-1);
    if (last !== undefined && this.#withLogits.includes(last)) {
      this.#withLogits = [...this.#withLogits.filter((one) => one !== last), last];
    }
    return { namespace, tokens, chunks };
  }

  add(prompt: PlainPrompt, index: number, slot: number, score: number | null, logits: number | null): void {
    const end = endsOf(prompt.tokens)[index]!;
    const chunk = prompt.chunks[index] ?? this.#append(prompt, index, slot, end);
    if (chunk === null || !this.#chunks.includes(chunk)) return;
    if (logits !== null && chunk.logits === null && this.#room.logits > 0) {
      if (this.#withLogits.length === this.#room.logits) this.#withLogits.shift()!.logits = null;
      chunk.logits = logits;
      this.#withLogits.push(chunk);
    }
    const next = prompt.tokens[end] ?? -1;
    if (score !== null && (chunk.score === null || next >= 0)) Object.assign(chunk, { score, next });
  }

  drop(namespace: string, tokens: readonly number[]): void {
    const name = nameOf(namespace, tokens, endsOf(tokens)[0]!);
    if (this.#find(name) === undefined) return;
    this.#remove((one) => one.name === name || one.name.startsWith(`${name} `));
  }

  #append(
    { namespace, tokens, chunks }: PlainPrompt,
    index: number,
    slot: number,
    end: number,
  ): PlainChunk | null {
    const before = chunks.at(-1);
    if (chunks.length !== index || (before !== undefined && !this.#chunks.includes(before))) return null;
    const name = nameOf(namespace, tokens, end);
    const known = this.#find(name);
    if (known !== undefined) {
      chunks.push(known);
      this.#use(chunks);
      return known;
    }
    if (this.#chunks.length === this.#room.chunks) {
      const [oldest] = this.#chunks;
      if (oldest === undefined || oldest === before) return null;
      this.#remove((one) => one === oldest);
    }
    const kv = Array.from({ length: end - index * CHUNK }, () => slot);
    const chunk: PlainChunk = { name, kv, score: null, next: -1, logits: null };
    chunks.push(chunk);
    this.#use(chunks);
    return chunk;
  }

  /** Counts a use of a prompt: the last chunk first, so that a chunk is older than the one before it. */
  #use(chunks: readonly PlainChunk[]): void {
    for (const chunk of chunks.toReversed()) {
      this.#chunks = [...this.#chunks.filter((one) => one !== chunk), chunk];
    }
  }

  #find(name: string): PlainChunk | undefined {
    return this.#chunks.find((one) => one.name === name);
  }

  #remove(matches: (chunk: PlainChunk) => boolean): void {
    this.#chunks = this.#chunks.filter((one) => !matches(one));
    this.#withLogits = this.#withLogits.filter((one) => !matches(one));
  }
}

/** Positions at which the chunks of a prompt end. */
const endsOf = (tokens: readonly number[]): number[] =>
  Array.from({ length: Math.ceil(tokens.length / CHUNK) }, (_, index) =>
    Math.min(tokens.length, (index + 1) * CHUNK),
  );

/** Names the chunk with everything before it. A chunk that is not a whole chunk has no successor. */
const nameOf = (namespace: string, tokens: readonly number[], end: number): string =>
  `${namespace}: ${tokens.slice(0, end).join(' ')}${end % CHUNK === 0 ? '' : '.'}`;

/** Checks that what is stored of a prompt is what the plain store has. */
function expectSame(prompt: StoredPrompt, plain: PlainPrompt): void {
  const found = prompt.chunks.map(({ kv, logprobs, hasLogprobs, next, logits, length }, index) => {
    const { logprob, top } = logprobs.get(0, MAX_TOP_LOGPROBS);
    const score = hasLogprobs ? logprob - index * CHUNK : null;
    if (hasLogprobs) expect(top).toEqual([[index * CHUNK, score]]);
    if (next >= 0) expect(logprobs.get(length, 0).logprob).toBe(logprob + length);
    return { kv: [...kv], score, next, logits: logits?.[0] ?? null };
  });
  expect(found).toEqual(plain.chunks.map(({ name: _, ...chunk }) => chunk));
}

const someSteps = fc.array(
  fc.record({
    namespace: fc.constantFrom('a', 'b'),
    // Few different ids, so that prompts share prefixes; 65,536 differs from 0 in its upper half only.
    prompt: fc.array(fc.constantFrom(0, 1, 65_536), { minLength: 1, maxLength: 5 * CHUNK }),
    share: fc.nat(100),
    /** Which of the open prompts adds chunks. */
    open: fc.nat(2),
    action: fc.constantFrom('open', 'open', 'add', 'add', 'add', 'add', 'score', 'score', 'drop'),
  }),
  { minLength: 40, maxLength: 300, size: 'max' },
);

describe('the prefix store', () => {
  it('finds, keeps and evicts what plain lists of prefixes would, within its budget', () => {
    const counts = { evicted: 0, logits: 0, broken: 0 };
    fc.assert(
      fc.property(someSteps, fc.nat(12), (steps, chunks) => {
        const budgetBytes = chunks * chunkBytes;
        const store = new PrefixStore(shapeOf(budgetBytes));
        const plain = new PlainStore(prefixStoreRoom(shapeOf(budgetBytes)));
        const prompts: (readonly [StoredPrompt, PlainPrompt])[] = [];
        for (const [number, { namespace, prompt, share, open, action }] of steps.entries()) {
          if (action === 'drop') {
            if (share >= 20) continue;
            store.drop(namespace, Int32Array.from(prompt));
            plain.drop(namespace, prompt);
          } else if (action === 'open') {
            const limit = share < 50 ? prompt.length : Math.floor((share / 100) * prompt.length);
            const stored = store.open(namespace, Int32Array.from(prompt), limit);
            prompts[open] = [stored, plain.open(namespace, prompt, limit)];
            expectSame(...prompts[open]);
          } else if (prompts[open] !== undefined) {
            const [stored, plainPrompt] = prompts[open];
            const ends = endsOf(plainPrompt.tokens);
            const index = share < 80 ? plainPrompt.chunks.length : Math.floor((share / 101) * ends.length);
            if (index >= ends.length) continue;
            const score = action === 'score' ? number : null;
            const logprobs = score === null ? null : scoresOf(stored.tokens, score);
            const logits = index === ends.length - 1 && share % 2 === 0 ? number : null;
            const row = logits === null ? null : new Float32Array(VOCABULARY).fill(logits);
            store.add(stored, number % 256, ends[index]!, logprobs, row);
            plain.add(plainPrompt, index, number % 256, score, logits);
            expect(stored.chunks).toHaveLength(plainPrompt.chunks.length);
            if (plainPrompt.chunks.length <= index) counts.broken++;
            counts.logits += plainPrompt.chunks.filter((chunk) => chunk.logits !== null).length;
          }
          expect(store.status.bytes).toBeLessThanOrEqual(budgetBytes);
        }
        counts.evicted += store.status.evictedChunks;
      }),
      { numRuns: runs(300) },
    );
    expect(counts.evicted).toBeGreaterThan(runs(1500));
    expect(counts.logits).toBeGreaterThan(runs(1500));
    expect(counts.broken).toBeGreaterThan(runs(300));
  });

  it('stores no more of a prompt than fits, and keeps its beginning', () => {
    const store = new PrefixStore(shapeOf(2 * chunkBytes + logitsBytes));
    const prompt = Int32Array.of(1, 2, 3, 4, 5, 6);
    const stored = store.open('', prompt, 6);
    for (const end of [2, 4, 6]) store.add(stored, 0, end, null, null);
    expect(store.open('', prompt, 6).chunks).toHaveLength(2);
    expect(store.open('other', prompt, 6).chunks).toHaveLength(0);
    // Nothing of it may be stored.
    expect(store.open('', prompt, 0).chunks).toHaveLength(0);
    expect(store.status).toMatchObject({ hits: 1, misses: 2, storedChunks: 2, evictedChunks: 0 });
  });

  it('keeps to its budget over thousands of different prompts', () => {
    const store = new PrefixStore(shapeOf(1000 * chunkBytes));
    for (let length = 1; length < 5_000; length++) {
      const tokens = Int32Array.from({ length: 3 }, (_, at) => length * at);
      const stored = store.open('', tokens, 3);
      for (const end of [2, 3]) store.add(stored, 0, end, null, new Float32Array(VOCABULARY));
    }
    expect(store.status.bytes).toBeLessThanOrEqual(1000 * chunkBytes);
    expect(store.status.bytes).toBeGreaterThan(990 * chunkBytes);
  });

  it('keeps the logprobs that it has when a second tier adds the same chunk', () => {
    const store = new PrefixStore(shapeOf(100 * chunkBytes));
    const tokens = Int32Array.of(1, 2, 3);
    const late = store.open('', tokens, 3);
    store.add(store.open('', tokens, 3), 0, CHUNK, scoresOf(tokens, 5), null);
    const stale = new PromptLogprobs(CHUNK + 1, MAX_TOP_LOGPROBS);
    expect(store.insert(late, { kv: new Uint8Array(CHUNK), logprobs: stale.bytes, logits: null })).toBe(true);
    const [chunk] = store.open('', tokens, 3).chunks;
    expect(chunk).toMatchObject({ hasLogprobs: true, next: 3 });
    expect(chunk?.logprobs.get(CHUNK, 0).logprob).toBe(5 + CHUNK);
  });
});
