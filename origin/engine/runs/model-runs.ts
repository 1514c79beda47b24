import type { DecodeBatch, ModelRunner, PrefillChunk } from '../../model/model-runner.ts';
import type { SamplerPool } from '../../sampling/pool/sampler-pool.ts';
import { type KvCopy, MAX_COPIED_CHUNKS } from '../kv/pending-copies.ts';
import type { StepReport } from '../messages.ts';
import { DecodeBatchBuilder, prefillChunk } from '../scheduling/step-plan.ts';
import { type RunPart, TimeShares } from '../scheduling/time-shares.ts';
import type { OpenRequest } from '../sequences/open-request.ts';
import type { PromptPrefill } from '../sequences/prompt-prefill.ts';
import type { Sequence } from '../sequences/sequence.ts';
import type { PrefixCache } from '../state/prefix-cache.ts';
import type { RunningSet } from '../state/running-set.ts';
import type { Scheduler } from '../state/scheduler.ts';
import type { EngineOptions } from './engine-options.ts';
import type { Requests } from './requests.ts';

/** One run of the model. */
export interface ModelRun extends Pick<StepReport, 'kind'> {
  /** To be made before the run. */
  readonly copies: readonly KvCopy[];
  /** The requests that fail if the run fails. */
  readonly requests: readonly OpenRequest[];
  start(): Float32Array | Promise<Float32Array>;
  postprocess(logits: Float32Array, now: number): RunResult;
  /** Charges the time of the whole run to the tenants in it, also if it failed. */
  charge(): void;
}

/** Counters of a run, and the KV copies to make after it. */
export interface RunResult extends Pick<StepReport, 'rows' | 'tokens'> {
  readonly copies: readonly KvCopy[];
}

/** So many positions of context cost about as much as the rest of a row. */
const POSITIONS_PER_ROW = 512;

/** Decode runs of so many rows can be stopped. A pool thread costs 0.1 ms; 16 rows take 2.5 ms. */
const LEAST_STOPPED_ROWS = 16;

/** A run that a short prompt of another tenant may stop. */
interface StoppableRun {
  readonly accounts: ReadonlySet<string>;
  readonly startedAt: number;
  readonly stop: AbortController;
  /** The account whose prompt has stopped it; null also if it was done before. */
  stoppedBy: string | null;
}

/**
 * How often a step brings logits that samplers ask for. After that, rows that still lack some are completed.
 */
const MOST_FETCHES = 3;

type RunParts = ReadonlyMap<string, RunPart>;

const ONE_ROW = { rows: 1, size: 1, ownMs: 0 };

const NO_LOGITS = new Float32Array(0);

/** The parts of the engine that runs read and advance. */
export interface ModelRunsParts {
  readonly scheduler: Scheduler;
  readonly running: RunningSet;
  readonly prefixes: PrefixCache;
  readonly requests: Requests;
}

/** Builds the runs of a step: what each computes, and how its logits become tokens. */
export class ModelRuns {
  readonly #runner: ModelRunner;
  readonly #scheduler: Scheduler;
  readonly #running: RunningSet;
  readonly #prefixes: PrefixCache;
  readonly #requests: Requests;
  readonly #pool: SamplerPool | null;
  readonly #now: () => number;
  readonly #batch: DecodeBatchBuilder;
  readonly #shares: TimeShares;
  /** What the model computes now. */
  #stoppable: StoppableRun | null = null;
  /** Whether the last run was stopped. */
  #wasStopped = false;
  /** The time of the step before this has been charged. */
  #chargedUntil = 0;

  constructor({ runner, pool = null, now, promptShare }: EngineOptions, parts: ModelRunsParts) {
    const { slots, minRows } = runner.shape;
    this.#runner = runner;
    this.#scheduler = parts.scheduler;
    this.#running = parts.running;
    this.#prefixes = parts.prefixes;
    this.#requests = parts.requests;
    this.#pool = pool;
    this.#now = now;
    this.#shares = new TimeShares(promptShare);
    this.#batch = new DecodeBatchBuilder(slots, minRows);
  }

  /** Charges an account with work outside of runs that has just ended. */
  charge(account: string, ms: number): void {
    this.#shares.charge('other', ms, new Map([[account, ONE_ROW]]));
    this.#chargedUntil += ms;
  }

  /**
   * Stops the run that the model makes now, if it is one of other tenants. The request has just been opened.
   * It must have a short prompt, and its tenant the time for both. The run is made again later.
   */
  stopFor(request: OpenRequest): void {
    const run = this.#stoppable;
    const { account, weight } = request;
    if (run === null || run.stoppedBy !== null || run.accounts.has(account)) return;
    if (!this.#scheduler.isShortNext(request)) return;
    const { accounts, startedAt, stop } = run;
    if (!this.#shares.mayStop(account, weight, accounts, this.#now() - startedAt)) return;
    run.stoppedBy = account;
    stop.abort();
  }

  #newStoppable(accounts: ReadonlySet<string>): StoppableRun {
    return { accounts, startedAt: this.#now(), stop: new AbortController(), stoppedBy: null };
  }

  /**
   * Charges a run that has ended, or that was stopped, with everything since the last one of its step:
   * scheduling, copies, the model, sampling and its messages.
   */
  #charge(kind: 'prefill' | 'decode', run: StoppableRun | null, parts: RunParts): void {
    const now = this.#now();
    const ms = now - this.#chargedUntil;
    this.#chargedUntil = now;
    this.#stoppable = null;
    const stoppedBy = run?.stoppedBy ?? null;
    this.#wasStopped = stoppedBy !== null;
    if (run && stoppedBy !== null) this.#shares.chargeStop(stoppedBy, run.accounts, ms);
    else this.#shares.charge(kind, ms, parts);
  }

  /** Begins a step. What was computed before it is charged to no tenant. */
  begin(now: number): void {
    this.#chargedUntil = now;
  }

  /**
   * Yields one prefill chunk, then the decode batch, of the tenants that are due. A prompt whose last chunk
   * was computed thus decodes in the same step. Each run is built when the run before it has been charged.
   */
  *schedule(): Generator<ModelRun> {
    yield* this.#schedulePrefills();
    const accounts = this.#shares.streams(this.#running.work);
    const decode = this.#scheduleDecode(accounts);
    if (decode !== null) yield decode;
  }

  /**
   * Yields runs until one computes a chunk, or copies a prompt for its later sequences. Runs that only
   * restore stored chunks come on top, as far as copying is cheap.
   */
  *#schedulePrefills(): Generator<ModelRun> {
    const mostRestored = MAX_COPIED_CHUNKS * this.#runner.shape.prefillChunk;
    let restored = 0;
    while (restored < mostRestored) {
      const account = this.#shares.prompt(this.#running.work);
      const prefill = account === null ? null : this.#running.nextPrefill(account);
      if (prefill === null) return;
      const copies = prefill.done;
      const run = this.#schedulePrefill(prefill);
      const computes = !this.#waits(prefill);
      yield run;
      if ((computes && !this.#wasStopped) || copies) return;
      if (!computes) restored += Math.min(prefill.tokens.length, mostRestored);
    }
  }

  /** Schedules the decoding sequences of the accounts. */
  #scheduleDecode(accounts: ReadonlySet<string>): ModelRun | null {
    const bySlot = this.#running.streamsOf(accounts);
    const batch = this.#batch.build(bySlot, (slot) => this.#running.idlePosition(slot));
    if (batch === null) return null;
    const sequences = bySlot.slice(batch.firstSlot, batch.firstSlot + batch.rows);
    const parts = new Map([...accounts].map((account) => [account, { rows: 0, size: 0, ownMs: 0 }]));
    for (const sequence of sequences) {
      if (sequence === null) continue;
      const part = parts.get(sequence.request.account)!;
      part.rows++;
      part.size += 1 + sequence.computed / POSITIONS_PER_ROW;
    }
    const run = batch.rows < LEAST_STOPPED_ROWS ? null : this.#newStoppable(accounts);
    return {
      kind: 'decode',
      copies: [],
      requests: sequences.flatMap((sequence) => sequence?.request ?? []),
      start: () => {
        this.#stoppable = run;
        return this.#runner.decode({ ...batch, coldness: this.#coldness(sequences) }, run?.stop.signal);
      },
      postprocess: (logits, now) => {
        if (run) run.stoppedBy = null;
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
          if (sequence.skippedSteps === 0) tokens++;
          if (parts.size === 1) continue;
          const end = this.#now();
          parts.get(sequence.request.account)!.ownMs += end - at;
          at = end;
        }
        this.#pool?.end();
        return { rows: tokens, tokens, copies: this.#running.compact() };
      },
      charge: () => this.#charge('decode', run, parts),
    };
  }

  /** Returns which rows may be sparse; undefined if none. */
  #coldness(sequences: readonly (Sequence | null)[]): DecodeBatch['coldness'] {
    if (this.#pool === null || !this.#runner.sparse) return undefined;
    // Rows of no sequence count as sparse, because nothing of them is needed.
    const coldness = sequences.map((sequence) => (sequence === null ? 1 : sequence.coldness));
    return sequences.some((sequence, row) => sequence && coldness[row] !== null) ? coldness : undefined;
  }

  /** Draws the tokens of several sequences on several threads. */
  #drawInPool(sequences: readonly (Sequence | null)[], logits: Float32Array): void {
    const pool = this.#pool;
    if (pool === null) return;
    const { sparse } = this.#runner;
    const drawn = inTurn(sequences).flatMap(({ sequence, row }) =>
      sequence.request.closed ? [] : { sequence, logits: this.#row(logits, row) },
    );
    const sparseDraws = drawn.filter(({ logits: row }) => (sparse?.logits.indexOf(row) ?? -1) >= 0).length;
    if (drawn.length < 2 && sparseDraws === 0) return;
    if (!pool.begin(logits, sparseDraws)) return;
    const submit = ({ sequence, logits: row }: (typeof drawn)[number]) =>
      this.#requests.submitDraw(sequence, row);
    const lacking = drawn.filter((row) => !submit(row));
    if (lacking.length > 0 && sparse?.fetchWanted()) for (const row of lacking) submit(row);
    pool.run();
    for (let fetch = 0; sparse && fetch < MOST_FETCHES; fetch++) {
      if (!pool.settle() || !sparse.fetchWanted()) return;
      pool.retry();
    }
    if (sparse) pool.settle();
  }

  /**
   * Schedules the next chunk of one prompt. Before its first chunk the prompt gets its slot. If the store has
   * more of it than one run may restore, or all of it, the run computes nothing.
   */
  #schedulePrefill(prefill: PromptPrefill): ModelRun {
    const entered = prefill.slot < 0 ? this.#enter(prefill) : [];
    const restored = this.#prefixes.restore(prefill);
    const { request, computed } = prefill;
    const chunk = this.#waits(prefill) ? null : this.#nextChunk(prefill);
    const run = this.#newStoppable(new Set([request.account]));
    return {
      kind: 'prefill',
      copies: [...entered, ...restored.copies],
      requests: [request],
      start: () => {
        restored.write();
        if (chunk === null) return restored.logits ?? prefill.logits ?? NO_LOGITS;
        if (!prefill.isShort) this.#stoppable = run;
        return this.#runner.prefill(chunk, AbortSignal.any([request.signal, run.stop.signal]));
      },
      postprocess: (logits, now) => {
        // A run that was done before it could be stopped counts.
        run.stoppedBy = null;
        const tokens = chunk?.tokens.length ?? 0;
        const result = { rows: 1, tokens, copies: [] };
        if (request.closed) return result;
        const rows = chunk?.logitsAt.length ?? 1;
        const row = (index: number) => this.#row(logits, index < 0 ? rows + index : index);
        return { ...result, copies: this.#requests.advancePrefill(prefill, computed + tokens, row, now) };
      },
      charge: () => this.#charge('prefill', run, new Map([[request.account, ONE_ROW]])),
    };
  }

  /** Whether a prompt is computed, or waits for KV. */
  #waits(prefill: PromptPrefill): boolean {
    return prefill.done || prefill.restores || this.#prefixes.waits(prefill);
  }

  #enter(prefill: PromptPrefill): readonly KvCopy[] {
    const { copies, cached } = this.#prefixes.assign(prefill);
    this.#requests.start(prefill, cached, this.#now());
    return copies;
  }

  #nextChunk({ slot, tokens, computed, wantedLogits, images, logitsFrom }: PromptPrefill): PrefillChunk {
    const { prefillChunk: length, maxPrefillChunks = 1 } = this.#runner.shape;
    // Running streams wait for one chunk at most.
    const chunks = this.#running.hasStreams ? 1 : maxPrefillChunks;
    return prefillChunk(slot, tokens, computed, length, chunks, wantedLogits, images, logitsFrom);
  }

  #row(logits: Float32Array, row: number): Float32Array {
    const { vocabularySize } = this.#runner.shape;
    return logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
  }
}

/** Returns the sequences with their rows in slot order, but those that waited longest first. */
function inTurn(sequences: readonly (Sequence | null)[]) {
  const rows = sequences.flatMap((sequence, row) => (sequence === null ? [] : [{ sequence, row }]));
  const hasSkipped = rows.some(({ sequence }) => sequence.skippedSteps > 0);
  return hasSkipped ? rows.sort((a, b) => b.sequence.skippedSteps - a.sequence.skippedSteps) : rows;
}
