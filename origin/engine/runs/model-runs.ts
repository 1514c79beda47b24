import type { DecodeBatch, ModelRunner, SlotToken } from '../../model/model-runner.ts';
import type { SamplerPool } from '../../sampling/pool/sampler-pool.ts';
import { DecodeBatchBuilder } from '../scheduling/step-plan.ts';
import type { TimeShares } from '../scheduling/time-shares.ts';
import type { Sequence } from '../sequences/sequence.ts';
import type { RunningSet } from '../state/running-set.ts';
import type { EngineOptions } from './engine-options.ts';
import type { ModelRun, ModelRunsParts } from './model-run.ts';
import { PrefillRuns } from './prefill-runs.ts';
import type { Requests } from './requests.ts';
import type { RunClock } from './run-clock.ts';

/** So many positions of context cost about as much as the rest of a row. */
const POSITIONS_PER_ROW = 512;

/** Decode runs of so many rows can be stopped. A pool thread costs 0.1 ms; 16 rows take 2.5 ms. */
const LEAST_STOPPED_ROWS = 16;

/**
 * How often a step brings logits that samplers ask for. After that, rows that still lack some are completed.
 */
const MOST_FETCHES = 3;

/** Builds the runs of a step: what each computes, and how its logits become tokens. */
export class ModelRuns {
  readonly #runner: ModelRunner;
  readonly #running: RunningSet;
  readonly #prefills: PrefillRuns;
  readonly #requests: Requests;
  readonly #pool: SamplerPool | null;
  readonly #now: () => number;
  readonly #batch: DecodeBatchBuilder;
  readonly #shares: TimeShares;
  readonly #clock: RunClock;

  constructor({ runner, pool = null, now }: EngineOptions, parts: ModelRunsParts) {
    this.#runner = runner;
    this.#running = parts.running;
    this.#prefills = new PrefillRuns({ runner, now }, parts);
    this.#requests = parts.requests;
    this.#pool = pool;
    this.#now = now;
    this.#shares = parts.shares;
    this.#clock = parts.clock;
    this.#batch = new DecodeBatchBuilder(runner.shape);
  }

  /**
   * Yields one prefill chunk, then the decode batch, of the tenants that are due. A prompt whose last chunk
   * was computed thus decodes in the same step. Each run is built when the run before it has been charged.
   *
   * If the device has begun a decode run, the step takes it first. Before that, a prompt's run begins behind
   * it if it can, so that the device computes without a pause.
   */
  *schedule(): Generator<ModelRun> {
    const prompts = this.#prefills.schedule();
    if (this.#haveBegun(this.#running.decoding)) {
      const next = prompts.next();
      const prompt = next.done ? null : next.value;
      prompt?.begin?.();
      const begun = this.#scheduleDecode(prompt);
      if (begun !== null) yield begun;
      if (prompt !== null) yield prompt;
      yield* prompts;
      return;
    }
    yield* prompts;
    const decode = this.#scheduleDecode();
    if (decode !== null) yield decode;
  }

  /**
   * Schedules the decoding sequences of the tenants that are due. If the device has begun a run, those of it;
   * the others join the next one.
   * @param prompt whose run ends after this one; its slots are assigned, so no sequence may move
   */
  #scheduleDecode(prompt: ModelRun | null = null): ModelRun | null {
    const accounts = this.#shares.streams(this.#running.work);
    const due = this.#running.streamsOf(accounts);
    const hasBegun = this.#haveBegun(due);
    const bySlot = hasBegun ? due.map((sequence) => (this.#hasBegun(sequence) ? sequence : null)) : due;
    const joining = hasBegun
      ? due.flatMap((sequence) => (sequence === null || this.#hasBegun(sequence) ? [] : rowOf(sequence)))
      : [];
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
    const run = batch.rows < LEAST_STOPPED_ROWS ? null : this.#clock.newRun(accounts);
    return {
      kind: 'decode',
      copies: [],
      requests: sequences.flatMap((sequence) => sequence?.request ?? []),
      hasRecorded: false,
      start: () => {
        this.#clock.enter(run);
        const draws = this.#draws(sequences);
        const coldness = this.#coldness(sequences, draws);
        const continues = this.#continues(sequences, joining.length);
        return this.#runner.decode({ ...batch, coldness, draws, continues, joining }, run?.stop.signal);
      },
      postprocess: (logits, now) => {
        if (run) run.stoppedBy = null;
        this.#drawInPool(this.#offerDrawn(sequences, logits), logits);
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
        return { rows: tokens, tokens, copies: prompt === null ? this.#running.compact() : [] };
      },
      charge: () => {
        prompt?.chargeBegun?.();
        this.#clock.chargeRun('decode', run, parts);
      },
    };
  }

  /** Whether one of them has begun. */
  #haveBegun(sequences: readonly (Sequence | null)[]): boolean {
    return this.#runner.hasBegun !== undefined && sequences.some(this.#hasBegun);
  }

  /** Whether the device computes the next token of a sequence in a run that has begun. */
  readonly #hasBegun = (sequence: Sequence | null): boolean =>
    sequence !== null && (this.#runner.hasBegun?.(rowOf(sequence)) ?? false);

  /**
   * Whether the next run probably is of the same sequences, or of those of them that go on, and of others
   * that join it. Crowds of prompts come first.
   */
  #continues(sequences: readonly (Sequence | null)[], joining: number): boolean {
    if (!this.#runner.runsAhead) return false;
    const { decoding, isCrowded } = this.#running;
    const count = (rows: readonly (Sequence | null)[]) => rows.filter((sequence) => sequence !== null).length;
    const goesOn = joining > 0 || sequences.some((sequence) => sequence !== null && sequence.remaining > 1);
    return goesOn && !isCrowded && count(sequences) + joining === count(decoding);
  }

  /** Returns the tokens that the device is to draw; undefined if none. */
  #draws(sequences: readonly (Sequence | null)[]): DecodeBatch['draws'] {
    if (!this.#runner.sparse?.draws) return undefined;
    const draws = sequences.map((sequence) => sequence && this.#requests.drawRequest(sequence));
    return draws.some((draw) => draw !== null) ? draws : undefined;
  }

  /** Returns which rows may be sparse; undefined if none. */
  #coldness(sequences: readonly (Sequence | null)[], draws: DecodeBatch['draws']): DecodeBatch['coldness'] {
    if (!this.#runner.sparse || (this.#pool === null && draws === undefined)) return undefined;
    // Rows of no sequence count as sparse, because nothing of them is needed.
    const coldness = sequences.map((sequence, row) =>
      sequence === null || draws?.[row] ? 1 : this.#pool && sequence.coldness,
    );
    return sequences.some((sequence, row) => sequence && coldness[row] !== null) ? coldness : undefined;
  }

  /** Gives sequences the tokens that the device has drawn. Returns the others by row. */
  #offerDrawn(sequences: readonly (Sequence | null)[], logits: Float32Array): readonly (Sequence | null)[] {
    const draws = this.#runner.sparse?.draws;
    if (!draws) return sequences;
    return sequences.map((sequence, row) => {
      const drawn = sequence && draws.drawn(this.#row(logits, row));
      sequence?.offer(drawn);
      return drawn === null ? sequence : null;
    });
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

  #row(logits: Float32Array, row: number): Float32Array {
    const { vocabularySize } = this.#runner.shape;
    return logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
  }
}

const rowOf = ({ slot, lastToken, computed }: Sequence): SlotToken => ({
  slot,
  token: lastToken,
  position: computed,
});

/** Returns the sequences with their rows in slot order, but those that waited longest first. */
function inTurn(sequences: readonly (Sequence | null)[]) {
  const rows = sequences.flatMap((sequence, row) => (sequence === null ? [] : [{ sequence, row }]));
  const hasSkipped = rows.some(({ sequence }) => sequence.skippedSteps > 0);
  return hasSkipped ? rows.sort((a, b) => b.sequence.skippedSteps - a.sequence.skippedSteps) : rows;
}
