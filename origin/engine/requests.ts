import { ApiError } from '../../shared/errors.ts';
import { InvalidLogitsError } from '../sampling/errors.ts';
import { Admission, type AdmissionOptions } from './admission.ts';
import { Deadlines } from './deadlines.ts';
import { affordableIntervalMs } from './event-pace.ts';
import type { KvCopy } from './kv-slots.ts';
import type { EngineStatus, StepReport, Submission } from './messages.ts';
import { OpenRequest } from './open-request.ts';
import { Outbox } from './outbox.ts';
import type { PromptPrefill } from './prompt-prefill.ts';
import type { Roster } from './running-set.ts';
import { samplingFault } from './sampling-fault.ts';
import { type SamplingContext, Sequence } from './sequence.ts';

export interface RequestsOptions
  extends Pick<AdmissionOptions, 'compile' | 'encodeImages' | 'maxWaiting' | 'now' | 'report'> {
  readonly roster: Roster;
  readonly context: SamplingContext;
  /** Tokens that end a text. */
  readonly eosIds: readonly number[];
  /** Unix milliseconds, in which submissions give their deadline. */
  readonly unixNow: () => number;
  /** Called when there is something to do or to say again: maybe some time after a submission, once it is prepared. */
  readonly onWork: () => void;
  /** Cores that all streams share; Infinity unless given: then events come as often as each submission asks. */
  readonly cores?: number;
}

/**
 * The requests' side of the engine: from submission to the one event that ends each of them. Knows nothing of the
 * model; what a run has computed comes in as logits, what is to be copied for it goes out.
 */
export class Requests {
  readonly #options: RequestsOptions;
  readonly #admission: Admission;
  readonly #outbox = new Outbox();
  readonly #deadlines = new Deadlines();
  /** Between the events of one choice, as crowded as it was after the last step. */
  #affordableMs = 0;

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.#admission = new Admission({
      ...options,
      open: (submission, preparation, submittedAt) => {
        const { eosIds } = options;
        const deadline = options.now() + submission.deadline - options.unixNow();
        const request = new OpenRequest(submission, { ...preparation, eosIds, submittedAt, deadline });
        this.#deadlines.add(request);
        options.roster.open(request);
        options.onWork();
      },
      fail: (requestId, error) => {
        this.#outbox.add(requestId, error);
        options.onWork();
      },
    });
  }

  /** Requests whose grammar is being compiled or whose images are being encoded. */
  get preparing(): number {
    return this.#admission.preparing;
  }

  submit(submission: Submission): void {
    this.#admission.submit(submission);
  }

  /** Forgets a request at once; no further event of it will be reported. */
  abort(requestId: string): void {
    this.#admission.abort(requestId);
    const request = this.#options.roster.requests.get(requestId);
    if (request !== undefined) this.#options.roster.close(request, true);
    this.#outbox.drop(requestId);
  }

  /** Ends requests whose time is over, waiting or running. */
  expire(now: number): void {
    for (const request of this.#deadlines.passed(this.#options.roster.requests.values(), now)) {
      const error = new ApiError('upstream_timeout', 'The request took longer than its time limit.');
      this.fail(request, error, false);
    }
  }

  /** Notes that a prompt has been given its slot. */
  start({ request, promptIndex }: PromptPrefill, cachedTokens: number, now: number): void {
    if (request.hasStarted(promptIndex)) return;
    this.#outbox.add(request.submission.requestId, request.start(promptIndex, cachedTokens, now));
  }

  /** Has the next token of a decoding sequence drawn together with others', before `decoded`. */
  enlist(sequence: Sequence, logits: Float32Array): void {
    this.#attempt(sequence.request, () => sequence.enlist(logits));
  }

  /** Takes up the next token of a decoding sequence, from its row of logits. */
  decoded(sequence: Sequence, logits: Float32Array, now: number): void {
    const sampled = this.#attempt(sequence.request, () => sequence.advance(logits, now));
    if (!sampled) return;
    if (sequence.finished) this.#options.roster.retire(sequence);
    this.#publish(sequence, now);
  }

  /**
   * Takes up a chunk of a prompt. After the last one every choice samples its first token from the same logits, then
   * takes its own slot.
   * @param end position after the chunk
   * @param row logits of the chunk's wanted positions; the last of them is row −1
   */
  prefilled(
    prefill: PromptPrefill,
    end: number,
    row: (index: number) => Float32Array,
    now: number,
  ): readonly KvCopy[] {
    const { request } = prefill;
    const { roster, context } = this.#options;
    if (!this.#attempt(request, () => prefill.advance(end, row, context))) return [];
    roster.kv.record(prefill.slot, end);
    if (!prefill.done) return [];
    if (prefill.echoes) {
      this.#outbox.add(request.submission.requestId, prefill.event(context.vocabulary.tokenBytes));
    }
    const sequences: Sequence[] = [];
    const begun = this.#attempt(request, () => {
      for (const pending of prefill.sequences) {
        const sequence = new Sequence(pending, context);
        if (!sequence.finished) sequence.advance(row(-1), now);
        sequences.push(sequence);
      }
    });
    if (!begun) return [];
    const decoding = sequences.filter((sequence) => !sequence.finished);
    const copies = roster.place(prefill, decoding);
    for (const sequence of sequences) this.#publish(sequence, now);
    return copies;
  }

  /**
   * Closes a request with its error.
   * @param modelFault the model is to blame: the request may succeed elsewhere, and its KV is not to be reused
   */
  fail(request: OpenRequest, { code, message, param }: ApiError, modelFault: boolean): void {
    if (request.closed) return;
    const { requestId } = request.submission;
    const usage = request.usage();
    this.#outbox.add(requestId, { type: 'error', code, message, param, retryable: modelFault, usage });
    this.#options.roster.close(request, !modelFault);
  }

  /**
   * Reports everything that has happened since the last time, as one message.
   * @param urgent even if no request has heard anything
   */
  flush(status: EngineStatus, urgent: boolean, report?: StepReport): void {
    const { roster, cores = Number.POSITIVE_INFINITY } = this.#options;
    this.#affordableMs = affordableIntervalMs(roster.choices, cores);
    if (report !== undefined) this.#outbox.addReport(report);
    const message = this.#outbox.take(status, urgent);
    if (message !== null) this.#options.report(message);
  }

  /** Does something that can fail for this request alone, which is then closed with its error; false if it did. */
  #attempt(request: OpenRequest, action: () => void): boolean {
    try {
      action();
      return true;
    } catch (thrown) {
      this.fail(request, samplingFault(thrown), thrown instanceof InvalidLogitsError);
      return false;
    }
  }

  #publish(sequence: Sequence, now: number): void {
    const { roster } = this.#options;
    const { request } = sequence;
    const { requestId } = request.submission;
    this.#outbox.add(requestId, ...sequence.publish(now, this.#affordableMs));
    if (!sequence.finished) return;
    roster.refund(sequence);
    this.#admission.recordFinish(now);
    request.unfinished--;
    if (request.unfinished > 0) return;
    this.#outbox.add(requestId, request.done(now));
    roster.close(request, true);
  }
}
