import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { prefixStoreRoom } from '../../../../origin/engine/kv/prefix-memory.ts';
import { PrefixStore, type StoredPrompt } from '../../../../origin/engine/kv/prefix-store.ts';
import { TokenScores } from '../../../../origin/engine/kv/token-scores.ts';
import type { KvBytes } from '../../../../origin/model/model-runner.ts';
import { MAX_TOP_LOGPROBS } from '../../../../shared/logprob.ts';

const CHUNK = 2;
const VOCABULARY = 20;
/** Every byte of a slot's KV is the slot's number. */
const kvBytes: KvBytes = {
  positionBytes: 1,
  read: (slot, _, __, bytes) => bytes.fill(slot),
  write: () => {},
};
const shapeOf = (budgetBytes: number) => ({ chunk: CHUNK, kvBytes, vocabularySize: VOCABULARY, budgetBytes });
const { chunkBytes, logitsBytes } = prefixStoreRoom(shapeOf(0));

/** Scores of a whole prompt, which one number identifies. */
function scoresOf(prompt: Int32Array, number: number): TokenScores {
  const scores = new TokenScores(prompt.length, MAX_TOP_LOGPROBS);
  for (let at = 0; at < prompt.length; at++) scores.set(at, { logprob: number + at, top: [[at, number]] });
  return scores;
}

interface PlainRun {
  readonly name: string;
  readonly kv: readonly number[];
  score: number | null;
  next: number;
  logits: number | null;
}

interface PlainPrompt {
  readonly namespace: string;
  readonly tokens: readonly number[];
  readonly runs: PlainRun[];
}

/** The same rules with lists that are searched from their start. */
class PlainStore {
  /** Least recently used first. */
  #runs: PlainRun[] = [];
  #withLogits: PlainRun[] = [];
  readonly #room: { readonly chunks: number; readonly logits: number };

  constructor(room: { readonly chunks: number; readonly logits: number }) {
    this.#room = room;
  }

  open(namespace: string, tokens: readonly number[], limit: number): PlainPrompt {
    const runs: PlainRun[] = [];
    for (const end of endsOf(tokens)) {
      const run = end <= limit ? this.#find(nameOf(namespace, tokens, end)) : undefined;
      if (run === undefined) break;
      runs.push(run);
    }
    // The last run first, so that a run is older than the one before it.
    for (const run of runs.toReversed()) this.#runs = [...this.#runs.filter((one) => one !== run), run];
    const last = runs.at(-1);
    if (last !== undefined && this.#withLogits.includes(last)) {
      this.#withLogits = [...this.#withLogits.filter((one) => one !== last), last];
    }
    return { namespace, tokens, runs };
  }

  add(prompt: PlainPrompt, index: number, slot: number, score: number | null, logits: number | null): void {
    const end = endsOf(prompt.tokens)[index]!;
    const run = prompt.runs[index] ?? this.#append(prompt, index, slot, end);
    if (run === null || !this.#runs.includes(run)) return;
    if (logits !== null && run.logits === null && this.#room.logits > 0) {
      if (this.#withLogits.length === this.#room.logits) this.#withLogits.shift()!.logits = null;
      run.logits = logits;
      this.#withLogits.push(run);
    }
    const next = prompt.tokens[end] ?? -1;
    if (score !== null && (run.score === null || next >= 0)) Object.assign(run, { score, next });
  }

  drop(namespace: string, tokens: readonly number[]): void {
    const name = nameOf(namespace, tokens, endsOf(tokens)[0]!);
    if (this.#find(name) === undefined) return;
    this.#remove((one) => one.name === name || one.name.startsWith(`${name} `));
  }

  #append(
    { namespace, tokens, runs }: PlainPrompt,
    index: number,
    slot: number,
    end: number,
  ): PlainRun | null {
    const before = runs.at(-1);
    if (runs.length !== index || (before !== undefined && !this.#runs.includes(before))) return null;
    const name = nameOf(namespace, tokens, end);
    const known = this.#find(name);
    if (known !== undefined) {
      runs.push(known);
      return known;
    }
    if (this.#runs.length === this.#room.chunks) {
      const [oldest] = this.#runs;
      if (oldest === undefined || oldest === before) return null;
      this.#remove((one) => one === oldest);
    }
    const kv = Array.from({ length: end - index * CHUNK }, () => slot);
    const run: PlainRun = { name, kv, score: null, next: -1, logits: null };
    const at = before === undefined ? this.#runs.length : this.#runs.indexOf(before);
    this.#runs.splice(at, 0, run);
    runs.push(run);
    return run;
  }

  #find(name: string): PlainRun | undefined {
    return this.#runs.find((one) => one.name === name);
  }

  #remove(matches: (run: PlainRun) => boolean): void {
    this.#runs = this.#runs.filter((one) => !matches(one));
    this.#withLogits = this.#withLogits.filter((one) => !matches(one));
  }
}

/** Positions at which the runs of a prompt end. */
const endsOf = (tokens: readonly number[]): number[] =>
  Array.from({ length: Math.ceil(tokens.length / CHUNK) }, (_, index) =>
    Math.min(tokens.length, (index + 1) * CHUNK),
  );

/** Names the run with everything before it. A run that is not a whole chunk has no successor. */
const nameOf = (namespace: string, tokens: readonly number[], end: number): string =>
  `${namespace}: ${tokens.slice(0, end).join(' ')}${end % CHUNK === 0 ? '' : '.'}`;

/** Checks that what is stored of a prompt is what the plain store has. */
function expectSame(prompt: StoredPrompt, plain: PlainPrompt): void {
  const found = prompt.runs.map(({ kv, scores, scored, next, logits, length }, index) => {
    const { logprob, top } = scores.get(0, MAX_TOP_LOGPROBS);
    const score = scored ? logprob - index * CHUNK : null;
    if (scored) expect(top).toEqual([[index * CHUNK, score]]);
    if (next >= 0) expect(scores.get(length, 0).logprob).toBe(logprob + length);
    return { kv: [...kv], score, next, logits: logits?.[0] ?? null };
  });
  expect(found).toEqual(plain.runs.map(({ name: _, ...run }) => run));
}

const someSteps = fc.array(
  fc.record({
    namespace: fc.constantFrom('a', 'b'),
    // Few different ids, so that prompts share prefixes; 65,536 differs from 0 in its upper half only.
    prompt: fc.array(fc.constantFrom(0, 1, 65_536), { minLength: 1, maxLength: 5 * CHUNK }),
    share: fc.nat(100),
    /** Which of the open prompts adds runs. */
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
            const index = share < 80 ? plainPrompt.runs.length : Math.floor((share / 101) * ends.length);
            if (index >= ends.length) continue;
            const score = action === 'score' ? number : null;
            const scores = score === null ? null : scoresOf(stored.tokens, score);
            const logits = index === ends.length - 1 && share % 2 === 0 ? number : null;
            const row = logits === null ? null : new Float32Array(VOCABULARY).fill(logits);
            store.add(stored, number % 256, ends[index]!, scores, row);
            plain.add(plainPrompt, index, number % 256, score, logits);
            expect(stored.runs).toHaveLength(plainPrompt.runs.length);
            if (plainPrompt.runs.length <= index) counts.broken++;
            counts.logits += plainPrompt.runs.filter((run) => run.logits !== null).length;
          }
          expect(store.status.bytes).toBeLessThanOrEqual(budgetBytes);
        }
        counts.evicted += store.status.evictedChunks;
      }),
      { numRuns: 300 },
    );
    expect(counts.evicted).toBeGreaterThan(500);
    expect(counts.logits).toBeGreaterThan(500);
    expect(counts.broken).toBeGreaterThan(100);
  });

  it('stores no more of a prompt than fits, and keeps its beginning', () => {
    const store = new PrefixStore(shapeOf(2 * chunkBytes + logitsBytes));
    const prompt = Int32Array.of(1, 2, 3, 4, 5, 6);
    const stored = store.open('', prompt, 6);
    for (const end of [2, 4, 6]) store.add(stored, 0, end, null, null);
    expect(store.open('', prompt, 6).runs).toHaveLength(2);
    expect(store.open('other', prompt, 6).runs).toHaveLength(0);
    // Nothing of it may be stored.
    expect(store.open('', prompt, 0).runs).toHaveLength(0);
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

  it('keeps the scores that it has when a second tier adds the same run', () => {
    const store = new PrefixStore(shapeOf(100 * chunkBytes));
    const tokens = Int32Array.of(1, 2, 3);
    const late = store.open('', tokens, 3);
    store.add(store.open('', tokens, 3), 0, CHUNK, scoresOf(tokens, 5), null);
    const stale = new TokenScores(CHUNK + 1, MAX_TOP_LOGPROBS);
    expect(store.insert(late, { kv: new Uint8Array(CHUNK), scores: stale.bytes, logits: null })).toBe(true);
    const [run] = store.open('', tokens, 3).runs;
    expect(run).toMatchObject({ scored: true, next: 3 });
    expect(run?.scores.get(CHUNK, 0).logprob).toBe(5 + CHUNK);
  });
});
