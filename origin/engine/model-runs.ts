import type { ModelRunner, PrefillChunk } from '../model/model-runner.ts';
import type { SamplerPool } from '../sampling/pool/sampler-pool.ts';
import type { KvCopy } from './kv/kv-slots.ts';
import type { StepReport } from './messages.ts';
import type { OpenRequest } from './open-request.ts';
import type { PrefillSlot } from './prefix-cache.ts';
import type { PromptPrefill } from './prompt-prefill.ts';
import type { Requests } from './requests.ts';
import type { RunningSet } from './running-set.ts';
import { TimeShares } from './scheduling/time-shares.ts';
import type { Sequence } from './sequence.ts';
import { DecodeBatchBuilder, prefillChunk } from './step-plan.ts';

/** One run of the model. */
export interface ModelRun extends Pick<StepReport, 'kind'> {
  /** To be made before the run. */
  readonly copies: readonly KvCopy[];
  /** The requests that fail if the run fails. */
  readonly requests: readonly OpenRequest[];
  start(): Float32Array | Promise<Float32Array>;
  postprocess(logits: Float32Array, now: number): RunResult;
  /** Charges the milliseconds of the whole run to the tenants in it, also if it failed. */
  charge(ms: number): void;
}

/** Counters of a run, and the KV copies to make after it. */
export interface RunResult extends Pick<StepReport, 'rows' | 'tokens'> {
  readonly copies: readonly KvCopy[];
}

/** Prompts of so many chunks in total are restored per step. To copy them takes a fraction of the time to compute one. */
const MAX_RESTORED_CHUNKS = 32;

/** So many positions of context cost about as much as the rest of a row. */
const POSITIONS_PER_ROW = 512;

const NO_LOGITS = new Float32Array(0);
/** Of a prompt that has its slot already. */
const IN_SLOT: PrefillSlot = { copies: [], restore: () => undefined, logits: null };

export interface ModelRunsOptions {
  readonly runner: ModelRunner;
  readonly running: RunningSet;
  readonly requests: Requests;
  readonly pool: SamplerPool | null;
  readonly now: () => number;
  readonly promptShare?: number | undefined;
}

/** Builds the runs of a step: what each computes, and how its logits become tokens. */
export class ModelRuns {
  readonly #runner: ModelRunner;
  readonly #running: RunningSet;
  readonly #requests: Requests;
  readonly #pool: SamplerPool | null;
  readonly #now: () => number;
  readonly #batch: DecodeBatchBuilder;
  readonly #shares: TimeShares;

  constructor({ runner, running, requests, pool, now, promptShare }: ModelRunsOptions) {
    const { slots, minRows } = runner.shape;
    this.#runner = runner;
    this.#running = running;
    this.#requests = requests;
    this.#pool = pool;
    this.#now = now;
    this.#shares = new TimeShares(promptShare);
    this.#batch = new DecodeBatchBuilder(slots, minRows);
  }

  /** Charges an account with work outside of runs. */
  charge(account: string, ms: number): void {
    this.#shares.charge('other', ms, new Map([[account, { rows: 1, size: 1, ownMs: 0 }]]));
  }

  /**
   * Yields one prefill chunk, then the decode batch, of the tenants that are due. A prompt whose last chunk was computed
   * thus decodes in the same step. Each run is built when the run before it has been charged.
   */
  *schedule(): Generator<ModelRun> {
    yield* this.#schedulePrefills();
    const accounts = this.#shares.streams(this.#running.work);
    const decode = this.#scheduleDecode(accounts);
    if (decode !== null) yield decode;
  }

  /** Yields runs until one computes a chunk, or copies a prompt for its later sequences. Prompts that are stored as a whole come on top, as far as copying is cheap. */
  *#schedulePrefills(): Generator<ModelRun> {
    let restored = 0;
    while (restored < MAX_RESTORED_CHUNKS * this.#runner.shape.prefillChunk) {
      const account = this.#shares.prompt(this.#running.work);
      const prefill = account === null ? null : this.#running.nextPrefill(account);
      if (prefill === null) return;
      const copies = prefill.done;
      const run = this.#schedulePrefill(prefill);
      const computes = !prefill.done;
      yield run;
      if (computes || copies) return;
      restored += prefill.tokens.length;
    }
  }

  /** Schedules the decoding sequences of the accounts. */
  #scheduleDecode(accounts: ReadonlySet<string>): ModelRun | null {
    const { decoding, kv } = this.#running;
    const bySlot = decoding.map((sequence) =>
      sequence && accounts.has(sequence.request.account) ? sequence : null,
    );
    const batch = this.#batch.build(bySlot, (slot) => decoding[slot]?.computed ?? kv.kept(slot));
    if (batch === null) return null;
    const sequences = bySlot.slice(batch.firstSlot, batch.firstSlot + batch.rows);
    const parts = new Map([...accounts].map((account) => [account, { rows: 0, size: 0, ownMs: 0 }]));
    for (const sequence of sequences) {
      if (sequence === null) continue;
      const part = parts.get(sequence.request.account)!;
      part.rows++;
      part.size += 1 + sequence.computed / POSITIONS_PER_ROW;
    }
    return {
      kind: 'decode',
      copies: [],
      requests: sequences.flatMap((sequence) => sequence?.request ?? []),
      start: () => this.#runner.decode(batch),
      postprocess: (logits, now) => {
        this.#drawInPool(sequences, logits);
        let tokens = 0;
        let at = parts.size > 1 ? this.#now() : 0;
        for (const { sequence, row } of inTurn(sequences)) {
          if (sequence.request.closed) continue;
          if (sequence.mustWait) {
            // The next step computes the same logits again.
            sequence.skippedSteps++;
            continue;
          }
          this.#requests.advance(sequence, this.#row(logits, row), now);
          tokens++;
          if (parts.size === 1) continue;
          const end = this.#now();
          parts.get(sequence.request.account)!.ownMs += end - at;
          at = end;
        }
        this.#pool?.end();
        return { rows: tokens, tokens, copies: this.#running.compact() };
      },
      charge: (ms) => this.#shares.charge('decode', ms, parts),
    };
  }

  /** Draws the tokens of several sequences on several threads. */
  #drawInPool(sequences: readonly (Sequence | null)[], logits: Float32Array): void {
    const pool = this.#pool;
    if (pool === null || sequences.length < 2 || !pool.begin(logits)) return;
    for (const [row, sequence] of sequences.entries()) {
      if (sequence && !sequence.request.closed) this.#requests.submitDraw(sequence, this.#row(logits, row));
    }
    pool.run();
  }

  /**
   * Schedules the next chunk of one prompt. Before its first chunk the prompt gets its slot. If everything of it is stored,
   * the run computes nothing.
   */
  #schedulePrefill(prefill: PromptPrefill): ModelRun {
    const { copies, restore, logits: stored } = prefill.slot < 0 ? this.#enter(prefill) : IN_SLOT;
    const { request, computed } = prefill;
    const chunk = prefill.done ? null : this.#nextChunk(prefill);
    return {
      kind: 'prefill',
      copies,
      requests: [request],
      start: () => {
        restore();
        return chunk === null
          ? (stored ?? prefill.logits ?? NO_LOGITS)
          : this.#runner.prefill(chunk, request.signal);
      },
      postprocess: (logits, now) => {
        const tokens = chunk?.tokens.length ?? 0;
        const result = { rows: 1, tokens, copies: [] };
        if (request.closed) return result;
        const rows = chunk?.logitsAt.length ?? 1;
        const row = (index: number) => this.#row(logits, index < 0 ? rows + index : index);
        return { ...result, copies: this.#requests.advancePrefill(prefill, computed + tokens, row, now) };
      },
      charge: (ms) =>
        this.#shares.charge('prefill', ms, new Map([[request.account, { rows: 1, size: 1, ownMs: 0 }]])),
    };
  }

  #enter(prefill: PromptPrefill): PrefillSlot {
    const entered = this.#running.prefixes.assign(prefill);
    this.#requests.start(prefill, prefill.computed, this.#now());
    return entered;
  }

  #nextChunk({ slot, tokens, computed, wantedLogits, images, logitsFrom }: PromptPrefill): PrefillChunk {
    const { prefillChunk: length, maxPrefillChunks = 1 } = this.#runner.shape;
    // Running streams wait for one chunk at most.
    const chunks = this.#running.decoding.some((sequence) => sequence !== null) ? 1 : maxPrefillChunks;
    return prefillChunk(slot, tokens, computed, length, chunks, wantedLogits, images, logitsFrom);
  }

  #row(logits: Float32Array, row: number): Float32Array {
    const { vocabularySize } = this.#runner.shape;
    return logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
  }
}

/** Returns the sequences with their rows in slot order, except that those that have waited longest come first. */
function inTurn(sequences: readonly (Sequence | null)[]) {
  const rows = sequences.flatMap((sequence, row) => (sequence === null ? [] : [{ sequence, row }]));
  const hasSkipped = rows.some(({ sequence }) => sequence.skippedSteps > 0);
  return hasSkipped ? rows.sort((a, b) => b.sequence.skippedSteps - a.sequence.skippedSteps) : rows;
}
