import type {
  BegunPrefill,
  DecodeBatch,
  KvBytes,
  ModelRunner,
  ModelShape,
  PrefillChunk,
  SlotToken,
  SparseRows,
} from '../../../../origin/model/model-runner.ts';
import { SparseLogits } from '../../../../origin/model/sparse-logits.ts';
import { Driver } from './engine-driver.ts';
import { NEUTRAL, submission } from './submissions.ts';
import { TOKEN_BYTES } from './vocabulary.ts';

/** Milliseconds of the host: before and after the draw of a row, to launch a prompt, and to read it. */
const HOST = { perRow: 0.002, launch: 2, prompt: 0.2 };
const TOKEN = 3;

/** Milliseconds that a card computes: an H200 with 1.2 B weights in float16. */
const decodeMs = (rows: number): number => 1.4 + (1.1 * rows) / 128;
const promptMs = (rows: number): number => 1.5 + (2.4 * rows) / 512;

/**
 * A card that computes nothing but takes time, and a host that takes time beside it. Both are on the clock
 * of `now`. It draws the same token always.
 */
export class SimulatedCard implements ModelRunner {
  readonly shape: ModelShape;
  readonly sparse: SparseRows;
  readonly kvBytes: KvBytes = {
    positionBytes: 8,
    read: (_, start, end) => this.#copyKv(end - start),
    write: () => {
      this.#settle();
      this.#copyKv(512);
    },
    discard: () => {},
  };
  readonly runsAhead = true;
  now = 0;
  /** Decode runs, those of them that began early, and rows of the runs of prompts. */
  readonly decodes: { readonly rows: number; readonly early: boolean }[] = [];
  readonly prompts: { readonly prompts: number; readonly rows: number; readonly early: boolean }[] = [];
  #free = 0;
  #begun: readonly SlotToken[] = [];
  readonly #logits: Float32Array<ArrayBuffer>;

  constructor(slots: number, contextLength: number) {
    const { vocabularySize: size } = TOKEN_BYTES;
    this.shape = {
      vocabularySize: size,
      contextLength,
      slots,
      prefillChunk: 512,
      minRows: 1,
      joinsPrompts: true,
    };
    this.#logits = new Float32Array(SparseLogits.length(slots, size));
    this.sparse = {
      logits: new SparseLogits(this.#logits, slots, size),
      draws: { drawn: () => ({ id: TOKEN, scores: null }) },
      fetchWanted: () => false,
      complete: () => {},
    };
  }

  hasBegun({ slot, token, position }: SlotToken): boolean {
    return this.#begun.some((row) => row.slot === slot && row.token === token && row.position === position);
  }

  decode({ firstSlot, rows, tokens, positions, idle, continues, joining = [] }: DecodeBatch): Float32Array {
    const asked = Array.from({ length: rows }, (_, row): SlotToken | null =>
      idle?.[row] ? null : { slot: firstSlot + row, token: tokens[row]!, position: positions[row]! },
    ).filter((row) => row !== null);
    const host = HOST.perRow * asked.length;
    this.now += host;
    const early = asked.every((row) => this.hasBegun(row));
    if (!early) {
      this.#settle();
      this.#compute(decodeMs(rows));
    }
    this.#compute(0.1);
    const drawn = this.#free;
    this.#begun = [];
    if (continues) {
      this.#begun = [
        ...asked.map(({ slot, position }) => ({ slot, token: TOKEN, position: position + 1 })),
        ...joining,
      ];
      this.#compute(decodeMs(rows));
    }
    this.now = Math.max(this.now, drawn) + host;
    this.decodes.push({ rows: asked.length, early });
    return this.#logits.subarray(0, rows * this.shape.vocabularySize);
  }

  async prefill(chunk: PrefillChunk): Promise<Float32Array> {
    return this.prefillTogether([chunk]);
  }

  async prefillTogether(chunks: readonly PrefillChunk[]): Promise<Float32Array> {
    this.#settle();
    return this.#prompt(chunks, false);
  }

  beginPrefill(chunks: readonly PrefillChunk[]): BegunPrefill {
    const before = this.#free;
    const logits = this.#prompt(chunks, true);
    const end = this.#free;
    return {
      finish: () => {
        this.now = Math.max(this.now, end) + HOST.prompt * chunks.length;
        return logits;
      },
      deviceMs: end - before,
    };
  }

  #prompt(chunks: readonly PrefillChunk[], early: boolean): Float32Array {
    const rows = chunks.reduce((sum, { tokens }) => sum + tokens.length, 0);
    this.prompts.push({ prompts: chunks.length, rows, early });
    this.#compute(promptMs(rows));
    this.now += HOST.launch;
    // The last kernels are launched last.
    this.#free = Math.max(this.#free, this.now);
    if (!early) this.#settle();
    if (!early) this.now += HOST.prompt * chunks.length;
    const logits = chunks.reduce((sum, { logitsAt }) => sum + logitsAt.length, 0);
    return new Float32Array(logits * this.shape.vocabularySize).fill(0);
  }

  copy(): void {
    this.#settle();
  }

  /** To main memory, or back. */
  #copyKv(positions: number): void {
    this.now += 0.1 + (4.8 * positions) / 1024;
  }

  dispose(): void {}

  #compute(ms: number): void {
    this.#free = Math.max(this.#free, this.now) + ms;
  }

  #settle(): void {
    this.now = Math.max(this.now, this.#free);
  }
}

export interface Load {
  readonly promptTokens: number;
  readonly tokens: number;
  readonly requests: number;
  readonly prefixStoreBytes?: number;
}

const STREAMS = 128;

/**
 * Runs a closed loop of 128 streams: each sends its next request when the last one ends.
 * @returns the card, milliseconds to each first token in ascending order, and what was measured after the
 * first 1.5 requests of each stream and before the last one is sent
 */
export async function closedLoop({ promptTokens, tokens, requests, prefixStoreBytes = 0 }: Load) {
  const card = new SimulatedCard(STREAMS, promptTokens + tokens + 8);
  const driver = new Driver(card, { now: () => card.now, unixNow: () => card.now, prefixStoreBytes });
  const waiting = new Map<string, number>();
  const open = new Set<string>();
  const firstAfter: number[] = [];
  const from = { run: 0, now: 0 };
  const until = { run: 0, now: 0 };
  const mark = (at: typeof from) => Object.assign(at, { run: card.decodes.length, now: card.now });
  const send = () => {
    const requestId = `request ${sent++}`;
    const prompt = Int32Array.from({ length: promptTokens }, (_, at) => (at < 4 ? sent >> (3 * at) : at) % 8);
    // The streams are out of step, as they are after some time.
    const isFirst = sent <= STREAMS && requests > STREAMS;
    const maxTokens = isFirst ? 1 + Math.floor((sent * tokens) / STREAMS) : tokens;
    const prompts = [{ tokens: prompt, maxTokens }];
    open.add(requestId);
    waiting.set(requestId, card.now);
    const sampling = { ...NEUTRAL, temperature: 1 };
    driver.submit(submission({ requestId, prompts, sampling, ignoreEos: true }));
    if (sent === 1.5 * STREAMS) mark(from);
    if (sent === requests) mark(until);
  };
  let sent = 0;
  while (sent < STREAMS) send();
  while (open.size > 0) {
    await driver.step();
    for (const requestId of open) {
      const types = new Set(driver.eventsOf(requestId).map(({ type }) => type));
      if (types.has('token') && waiting.has(requestId)) {
        firstAfter.push(card.now - waiting.get(requestId)!);
        waiting.delete(requestId);
      }
      if (!types.has('done')) continue;
      open.delete(requestId);
      if (sent < requests) send();
    }
  }
  const decodes = card.decodes.slice(from.run, until.run);
  return { card, firstAfter: firstAfter.sort((a, b) => a - b), decodes, ms: until.now - from.now };
}
