import { nullOn } from '@continuo/shared/null-on.ts';
import {
  type BegunPrefill,
  type LogitRows,
  type ModelRunner,
  type PrefillChunk,
  RuntimeFault,
} from '../../model/model-runner.ts';
import { type KvCopy, MAX_COPIED_CHUNKS } from '../kv/pending-copies.ts';
import { prefillChunk } from '../scheduling/step-plan.ts';
import type { TimeShares } from '../scheduling/time-shares.ts';
import type { PromptPrefill } from '../sequences/prompt-prefill.ts';
import type { PrefixCache } from '../state/prefix-cache.ts';
import type { RunningSet } from '../state/running-set.ts';
import type { EngineOptions } from './engine-options.ts';
import { isJoinable, JoinedPrompts } from './joined-prompts.ts';
import type { ModelRun, ModelRunsParts } from './model-run.ts';
import type { Requests } from './requests.ts';
import { ONE_ROW, type RunClock } from './run-clock.ts';

const NO_LOGITS = new Float32Array(0);

/** The prompts of a run in the order of their slots, and the copies to be made before it. */
interface Joined {
  readonly members: readonly PromptPrefill[];
  readonly copies: readonly KvCopy[];
}

/** What a run computes of a prompt, up to the position `end`. */
interface PrefillPart {
  readonly prefill: PromptPrefill;
  readonly chunk: PrefillChunk;
  readonly end: number;
}

/** What the rows of a run have said of a prompt, of which nothing is recorded yet. */
interface PrefillResult {
  readonly prefill: PromptPrefill;
  readonly start: number;
  /** The prompt's last row if it is needed, else null. */
  readonly last: Float32Array | null;
}

/** Builds the runs of a step that compute prompts, or restore what is stored of them. */
export class PrefillRuns {
  readonly #runner: ModelRunner;
  readonly #running: RunningSet;
  readonly #prefixes: PrefixCache;
  readonly #requests: Requests;
  readonly #now: () => number;
  readonly #shares: TimeShares;
  readonly #clock: RunClock;

  constructor({ runner, now }: Pick<EngineOptions, 'runner' | 'now'>, parts: ModelRunsParts) {
    this.#runner = runner;
    this.#running = parts.running;
    this.#prefixes = parts.prefixes;
    this.#requests = parts.requests;
    this.#now = now;
    this.#shares = parts.shares;
    this.#clock = parts.clock;
  }

  /**
   * Yields runs until enough have computed chunks, or one copies a prompt for its later sequences. Runs that
   * only restore stored chunks come on top, as far as copying is cheap.
   */
  *schedule(): Generator<ModelRun> {
    const mostRestored = MAX_COPIED_CHUNKS * this.#runner.shape.prefillChunk;
    let restored = 0;
    let computed = 0;
    while (restored < mostRestored && this.#running.prefills.length > 0) {
      const account = this.#shares.prompt(this.#running.work);
      const prefill = account === null ? null : this.#running.nextPrefill(account);
      if (prefill === null) return;
      const copies = prefill.done;
      const run = this.#run(prefill);
      const computes = !this.#waits(prefill);
      yield run;
      if (copies) return;
      if (computes && !this.#clock.wasStopped && ++computed >= this.#maxRuns) return;
      if (!computes) restored += Math.min(prefill.tokens.length, mostRestored);
    }
  }

  /**
   * Schedules the next chunk of one prompt, with other whole prompts of its account if the runner can join
   * them. Before its first chunk a prompt gets its slot. If the store has more of it than one run may
   * restore, or all of it, the run computes nothing.
   */
  #run(prefill: PromptPrefill): ModelRun {
    const entered = prefill.slot < 0 ? this.#enter(prefill) : [];
    const { restores } = prefill;
    const restored = this.#prefixes.restore(prefill);
    const joined = this.#join(prefill);
    const parts = this.#waits(prefill) ? [] : joined.members.map((member) => this.#part(member, joined));
    const { request } = prefill;
    const copies = [...entered, ...restored.copies, ...joined.copies];
    const mayBegin = parts.length > 0 && copies.length === 0 && !restores;
    const run = this.#clock.newRun(new Set([request.account]));
    let begun: (() => BegunPrefill) | null = null;
    let rows: LogitRows | null = null;
    let hasRecorded = false;
    return {
      kind: 'prefill',
      get hasRecorded() {
        return hasRecorded;
      },
      copies,
      requests: joined.members.map((member) => member.request),
      begin: () => {
        if (mayBegin) begun = this.#begin(parts);
      },
      chargeBegun: () => {
        const deviceMs = nullOn(RuntimeFault, () => begun?.().deviceMs);
        if (deviceMs) this.#clock.chargeBegun(request.account, deviceMs);
      },
      start: () => {
        if (begun !== null) {
          rows = this.#rowsOf(begun().finish());
          return NO_LOGITS;
        }
        restored.write();
        if (parts.length === 0) {
          const logits = restored.logits ?? prefill.logits ?? NO_LOGITS;
          rows = this.#rowsOf(logits);
          return logits;
        }
        if (!joined.members.every(({ isShort }) => isShort)) this.#clock.enter(run);
        const { signal } = run.stop;
        const stop = parts.length > 1 ? signal : AbortSignal.any([request.signal, signal]);
        return this.#compute(parts, stop).then((computed) => {
          rows = computed;
          return NO_LOGITS;
        });
      },
      postprocess: (_, now) => {
        // A run that was done before it could be stopped counts.
        run.stoppedBy = null;
        const results =
          parts.length > 0
            ? this.#read(parts, rows!)
            : [this.#readOne(prefill, prefill.computed, part(rows!, 0, 1))];
        hasRecorded = true;
        const tokens = parts.reduce((sum, { chunk }) => sum + chunk.tokens.length, 0);
        return { rows: results.length, tokens, copies: this.#advance(results, now) };
      },
      charge: () => this.#clock.chargeRun('prefill', run, new Map([[request.account, ONE_ROW]])),
    };
  }

  /**
   * Begins chunks behind the decode run that has begun. Returns null if they must be computed in their turn,
   * and throws a fault of the device when the run is asked for.
   */
  #begin(parts: readonly PrefillPart[]): (() => BegunPrefill) | null {
    if (parts.some(({ prefill }) => this.#canScore(prefill))) return null;
    try {
      const begun = this.#runner.beginPrefill?.(parts.map(({ chunk }) => chunk)) ?? null;
      return begun && (() => begun);
    } catch (thrown) {
      return () => {
        throw thrown;
      };
    }
  }

  /** Computes chunks. If the device scores all of their tokens, their logits stay there. */
  async #compute(parts: readonly PrefillPart[], stop: AbortSignal): Promise<LogitRows> {
    const chunks = parts.map(({ chunk }) => chunk);
    const wanted = chunks.reduce((sum, { logitsAt }) => sum + logitsAt.length, 0);
    if (wanted > 0 && parts.every(({ prefill }) => this.#canScore(prefill))) {
      const next = parts.flatMap(({ prefill: { tokens }, chunk: { start, logitsAt } }) =>
        Array.from(logitsAt, (at) => tokens[start + at + 1] ?? 0),
      );
      return this.#runner.score!(chunks, Int32Array.from(next), stop);
    }
    const logits =
      chunks.length > 1
        ? this.#runner.prefillTogether!(chunks, stop)
        : this.#runner.prefill(chunks[0]!, stop);
    return this.#rowsOf(await logits);
  }

  /** Whether the device scores the tokens of a prompt, so that their logits stay there. */
  #canScore({ isScorable }: PromptPrefill): boolean {
    return this.#maxScored !== undefined && isScorable;
  }

  /** Rows that the device scores in one run; undefined = it scores none. */
  get #maxScored(): number | undefined {
    return this.#runner.score === undefined ? undefined : this.#runner.shape.maxScored;
  }

  /** Gives the prompts that a run can compute with this one their slots, and makes the copies for that. */
  #join(prefill: PromptPrefill): Joined {
    const { prefillChunk: chunk, joinsPrompts = false } = this.#runner.shape;
    const scores = this.#canScore(prefill);
    const most = chunk * this.#maxChunks;
    const joined = new JoinedPrompts(prefill, scores ? Math.min(most, this.#maxScored!) : most);
    const copies: KvCopy[] = [];
    const canJoin = (candidate: PromptPrefill) =>
      isJoinable(candidate, chunk) && !this.#waits(candidate) && this.#canScore(candidate) === scores;
    if (joinsPrompts && canJoin(prefill)) {
      for (const candidate of this.#running.prefillsOf(prefill.request.account)) {
        if (candidate === prefill || !canJoin(candidate) || !joined.suits(candidate)) continue;
        if (candidate.slot < 0) copies.push(...this.#enter(candidate));
        if (canJoin(candidate)) joined.add(candidate);
      }
    }
    return { members: joined.members, copies };
  }

  #part(prefill: PromptPrefill, { members }: Joined): PrefillPart {
    const chunk = this.#nextChunk(prefill, members.length > 1 ? 1 : undefined);
    return { prefill, chunk, end: prefill.computed + chunk.tokens.length };
  }

  /** @throws RuntimeFault if the device does not bring a row */
  #read(parts: readonly PrefillPart[], rows: LogitRows): readonly PrefillResult[] {
    let first = 0;
    return parts.map(({ prefill, chunk, end }) => {
      const count = chunk.logitsAt.length;
      first += count;
      return this.#readOne(prefill, end, part(rows, first - count, count));
    });
  }

  #readOne(prefill: PromptPrefill, end: number, rows: LogitRows): PrefillResult {
    const start = prefill.computed;
    const last = prefill.request.closed ? null : this.#requests.readPrefill(prefill, end, rows);
    return { prefill, start, last };
  }

  #advance(results: readonly PrefillResult[], now: number): KvCopy[] {
    return results.flatMap(({ prefill, start, last }) =>
      prefill.request.closed ? [] : this.#requests.advancePrefill(prefill, start, last, now),
    );
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

  /** Most runs of a step that compute. On a card, a few streams wait for two, so that a crowd waits less. */
  get #maxRuns(): number {
    return this.#runner.shape.joinsPrompts && this.#running.isCrowded ? 2 : 1;
  }

  /** Most chunks of a run. Running streams wait for one chunk at most. */
  get #maxChunks(): number {
    return this.#running.hasStreams ? 1 : (this.#runner.shape.maxPrefillChunks ?? 1);
  }

  #nextChunk(prefill: PromptPrefill, chunks = this.#maxChunks): PrefillChunk {
    const { prefillChunk: chunk, maxPromptLogits } = this.#runner.shape;
    const maxLogits = this.#canScore(prefill) ? this.#maxScored : maxPromptLogits;
    return prefillChunk(prefill, { chunk, chunks, maxLogits });
  }

  #rowsOf(logits: Float32Array): LogitRows {
    const { vocabularySize } = this.#runner.shape;
    const row = (index: number) => logits.subarray(index * vocabularySize, (index + 1) * vocabularySize);
    return { row, score: () => null };
  }
}

/** Returns some of the rows, of which the last one is also row −1. */
function part(rows: LogitRows, from: number, count: number): LogitRows {
  const at = (index: number) => from + (index < 0 ? count + index : index);
  return { row: (index) => rows.row(at(index)), score: (index, top) => rows.score(at(index), top) };
}
