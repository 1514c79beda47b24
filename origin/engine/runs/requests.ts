import { bugTrace } from '@continuo/shared/error-details.ts';
import { ApiError, toApiError } from '@continuo/shared/errors.ts';
import type { DrawRequest } from '../../model/device-draws.ts';
import { type LogitRows, RuntimeFault } from '../../model/model-runner.ts';
import { InvalidLogitsError, NoCandidatesError } from '../../sampling/argmax.ts';
import type { KvCopy } from '../kv/pending-copies.ts';
import { type PromptSnapshots, snapshotOf } from '../kv/state-snapshots.ts';
import type { EngineStatus, StepReport } from '../messages.ts';
import type { Throughput } from '../scheduling/throughput.ts';
import type { OpenRequest } from '../sequences/open-request.ts';
import type { PromptPrefill } from '../sequences/prompt-prefill.ts';
import { newSequence } from '../sequences/rewinding-sequence.ts';
import type { Sequence } from '../sequences/sequence.ts';
import type { SamplingContext } from '../sequences/sequence-sampling.ts';
import type { PrefixCache } from '../state/prefix-cache.ts';
import type { RunningSet } from '../state/running-set.ts';
import type { Scheduler } from '../state/scheduler.ts';
import type { EngineOptions } from './engine-options.ts';
import { Outbox } from './outbox.ts';

/** However many streams run, each sends ten events per second. */
const MAX_EVENT_INTERVAL_MS = 100;

/** Logits that the first tokens of a prompt's sequences are sampled from in one step: about 5 ms. */
const MAX_FIRST_LOGITS = 2 ** 21;

/** The parts of the engine that requests pass through. */
interface RequestsParts {
  readonly scheduler: Scheduler;
  readonly running: RunningSet;
  readonly prefixes: PrefixCache;
  readonly context: SamplingContext;
  readonly throughput: Throughput;
}

/**
 * Takes each request from its opening to its one terminal event. Does not know the model: logits come in, and
 * the KV copies to make go out.
 */
export class Requests {
  readonly #options: EngineOptions;
  readonly #parts: RequestsParts;
  readonly #outbox = new Outbox();
  /** Earliest deadline of all open requests. */
  #nextDeadline = Number.POSITIVE_INFINITY;
  /** Minimum milliseconds between two events of a choice, by the number of running choices. */
  #minEventIntervalMs = 0;

  constructor(options: EngineOptions, parts: RequestsParts) {
    this.#options = options;
    this.#parts = parts;
  }

  open(request: OpenRequest): void {
    this.#nextDeadline = Math.min(this.#nextDeadline, request.deadline);
    this.#parts.scheduler.open(request);
  }

  /** Ends a request that could not be opened; the error is its only event. */
  refuse(requestId: string, thrown: unknown): void {
    const { code, message, param } = this.#errorFor(thrown);
    const retryable = code === 'upstream_error';
    this.#outbox.add(requestId, { type: 'error', code, message, param, retryable });
  }

  /** Removes a request at once; it sends no more events. */
  abort(requestId: string): void {
    const request = this.#parts.scheduler.requests.get(requestId);
    if (request !== undefined) this.#parts.scheduler.close(request, true);
    this.#outbox.drop(requestId);
  }

  /** Fails the requests whose deadline has passed, waiting or running. */
  expire(now: number): void {
    if (now < this.#nextDeadline) return;
    this.#nextDeadline = Number.POSITIVE_INFINITY;
    for (const request of this.#parts.scheduler.requests.values()) {
      if (request.deadline <= now) {
        const error = new ApiError('upstream_timeout', 'The request took longer than its time limit.');
        this.fail(request, error, false);
      } else this.#nextDeadline = Math.min(this.#nextDeadline, request.deadline);
    }
  }

  /** Notes that a prompt has entered its slot. */
  start(prefill: PromptPrefill, cachedTokens: number, now: number): void {
    const { request, promptIndex } = prefill;
    prefill.startedAt = now;
    if (request.hasStarted(promptIndex)) return;
    this.#outbox.add(request.submission.requestId, request.start(promptIndex, cachedTokens, now));
  }

  /** Returns what a device needs to draw a sequence's next token; null if it cannot. */
  drawRequest(sequence: Sequence): DrawRequest | null {
    let request: DrawRequest | null = null;
    this.#attempt(sequence.request, () => {
      request = sequence.drawRequest();
    });
    return request;
  }

  /** Adds a sequence's next draw to the sampler pool; `advance` must follow. False: it needs more logits. */
  submitDraw(sequence: Sequence, logits: Float32Array): boolean {
    let isSubmitted = true;
    this.#attempt(sequence.request, () => {
      isSubmitted = sequence.submitDraw(logits);
    });
    return isSubmitted;
  }

  /** Takes the next token of a decoding sequence from its row of logits. */
  advance(sequence: Sequence, logits: Float32Array, now: number): void {
    const isSampled = this.#attempt(sequence.request, () => sequence.advance(logits, now));
    if (isSampled) this.#publish(sequence, now);
  }

  /**
   * Reads what the logits of a chunk say, before anything of it is recorded. `advancePrefill` must follow
   * unless that closes the request.
   * @param end position after the chunk
   * @param rows of the chunk's wanted positions; the last of them is row −1
   * @returns the prompt's last row if it is needed, else null
   * @throws RuntimeFault if the device does not bring a row
   */
  readPrefill(prefill: PromptPrefill, end: number, rows: LogitRows): Float32Array | null {
    const { request, wantedLogits, generates } = prefill;
    if (!this.#attempt(request, () => prefill.advance(end, rows, this.#parts.context))) return null;
    return prefill.done && (generates || wantedLogits === 'last') ? rows.row(-1) : null;
  }

  /**
   * Takes the results of a chunk. After the last chunk, every sequence samples its first token from the same
   * logits and starts decoding in its own slot. If there are many, or if they need many copies, some start in
   * later calls, with the same logits. If the prompt is late, its sequences end; the KV so far stays in the
   * prefix cache.
   * @param start first position of the chunk
   * @param last what `readPrefill` returned
   */
  advancePrefill(
    prefill: PromptPrefill,
    start: number,
    last: Float32Array | null,
    now: number,
  ): readonly KvCopy[] {
    const { request } = prefill;
    const { running, prefixes, context } = this.#parts;
    this.#keepStates(prefill);
    const isStorable = prefill.wantedLogits === 'last' && !prefill.healing;
    prefixes.record(prefill, start, prefill.computed, isStorable ? last : null);
    const isCut = !prefill.done && prefill.isLate(now);
    if (!prefill.done && !isCut) return [];
    if (prefill.sendsEvent && prefill.logits === null) {
      this.#outbox.add(request.submission.requestId, prefill.result);
    }
    const sequences: Sequence[] = [];
    const started = this.#attempt(request, () => {
      const mostSampled = Math.max(1, Math.floor(MAX_FIRST_LOGITS / context.workspace.vocabularySize));
      const mostStarted = Math.min(mostSampled, prefixes.copiesPerRun(prefill));
      const count = prefill.generates && !isCut ? mostStarted : prefill.sequences.length;
      if (count < prefill.sequences.length) prefill.logits ??= last!.slice();
      for (const queued of prefill.sequences.slice(0, count)) {
        const sequence = newSequence(queued, prefill.healing, context, this.#snapshotsOf(prefill));
        if (isCut || !prefill.generates) sequence.end('length', null);
        else sequence.advance(last!, now);
        sequences.push(sequence);
      }
    });
    if (!started) return [];
    prefill.sequences.splice(0, sequences.length);
    const going = sequences.filter(({ finish }) => finish === null);
    const copies = running.startDecoding(prefill, going);
    for (const sequence of going) sequence.enterSlot();
    for (const sequence of sequences) this.#publish(sequence, now);
    return copies;
  }

  /** Keeps the states of a prompt's slot that its sequences begin from. */
  #keepStates(prefill: PromptPrefill): void {
    const { states = null } = this.#options.runner;
    const { slot, computed, healing } = prefill;
    if (states === null || !prefill.generates) return;
    if (computed === healing?.from) prefill.healedState = snapshotOf(states, slot, computed);
    if (prefill.done) prefill.endState ??= snapshotOf(states, slot, computed);
  }

  /** Null if slots are their KV, or if the prompt was cut. */
  #snapshotsOf({ healedState, endState }: PromptPrefill): PromptSnapshots | null {
    const { states = null } = this.#options.runner;
    return states && endState && { states, end: endState, healed: healedState };
  }

  /**
   * Closes a request with an error.
   * @param modelFailed the request may succeed elsewhere, and its KV must not be reused
   */
  fail(request: OpenRequest, { code, message, param }: ApiError, modelFailed: boolean): void {
    if (request.closed) return;
    const { requestId } = request.submission;
    const usage = request.usage();
    this.#outbox.add(requestId, { type: 'error', code, message, param, retryable: modelFailed, usage });
    this.#parts.scheduler.close(request, !modelFailed);
  }

  /**
   * Reports everything since the last report as one message.
   * @param urgent report even if there are no events
   */
  flush(statusOf: () => EngineStatus, urgent: boolean, report?: StepReport): void {
    const { maxEventsPerSecond = Number.POSITIVE_INFINITY } = this.#options;
    const affordableMs = (this.#parts.running.choices * 1000) / maxEventsPerSecond;
    this.#minEventIntervalMs = Math.min(MAX_EVENT_INTERVAL_MS, affordableMs);
    if (report !== undefined) this.#outbox.addReport(report);
    const message = this.#outbox.take(statusOf, urgent);
    if (message !== null) this.#options.report(message);
  }

  /**
   * Runs an action; if it throws, closes only this request with an error and returns false.
   * @throws RuntimeFault
   */
  #attempt(request: OpenRequest, action: () => void): boolean {
    try {
      action();
      return true;
    } catch (thrown) {
      // The device has failed, not the request.
      if (thrown instanceof RuntimeFault) throw thrown;
      this.fail(request, this.#errorFor(thrown), thrown instanceof InvalidLogitsError);
      return false;
    }
  }

  /** The error for the client. The trace of a defect is reported, because the error does not have it. */
  #errorFor(thrown: unknown): ApiError {
    if (thrown instanceof NoCandidatesError)
      return new ApiError('invalid_value', 'The parameters of the request forbid every token.');
    if (thrown instanceof InvalidLogitsError)
      return new ApiError('upstream_error', 'The model computed logits that are not numbers.');
    const error = toApiError(thrown);
    if (error !== thrown) this.#options.report({ type: 'defect', trace: bugTrace(thrown) });
    return error;
  }

  #publish(sequence: Sequence, now: number): void {
    const { scheduler, throughput } = this.#parts;
    const { request } = sequence;
    const { requestId } = request.submission;
    this.#outbox.add(requestId, ...sequence.publish(now, this.#minEventIntervalMs));
    if (sequence.finish === null) return;
    scheduler.finish(sequence);
    request.unfinished--;
    if (request.unfinished > 0) return;
    throughput.recordFinish(now);
    this.#outbox.add(requestId, request.done(now));
    scheduler.close(request, true);
  }
}
