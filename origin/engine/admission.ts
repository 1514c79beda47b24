import { toApiError } from '../../shared/errors.ts';
import type { GenerationEvent } from '../../shared/generation.ts';
import type { CompiledGrammar } from '../grammar/constraint.ts';
import type { EngineReport, Submission } from './messages.ts';
import { sequenceCount } from './open-request.ts';
import type { Roster } from './roster.ts';
import { Throughput } from './throughput.ts';

/** Finished sequences that retry-after looks back on. */
const THROUGHPUT_WINDOW = 64;

export interface AdmissionOptions {
  readonly roster: Roster;
  /** Sequences that may wait for a slot. */
  readonly maxWaiting: number;
  /**
   * @param constraint a WireConstraint as JSON
   * @throws ApiError when the grammar is not valid
   */
  readonly compile: (constraint: string, tenantId: string) => CompiledGrammar | Promise<CompiledGrammar>;
  /** Milliseconds, with fractions, on a clock that never goes back. */
  readonly now: () => number;
  readonly report: (report: EngineReport) => void;
  /** The submission is complete: its request may be opened. */
  readonly open: (submission: Submission, grammar: CompiledGrammar | null) => void;
  /** The submission has failed; the event is the only one of its request. */
  readonly fail: (requestId: string, error: GenerationEvent) => void;
}

/** From a submission to an open request: room in the queue, an honest retry-after, the grammar compiled. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #throughput = new Throughput(THROUGHPUT_WINDOW);
  readonly #compiling = new Set<string>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Requests whose grammar is being compiled. */
  get compiling(): number {
    return this.#compiling.size;
  }

  /** Reports `admitted` or `refused` before anything else is said of the request. */
  submit(submission: Submission): void {
    const { roster, maxWaiting, now, report, open } = this.#options;
    const { requestId, tenantId, constraint } = submission;
    const sequences = sequenceCount(submission);
    if (!roster.hasRoom(tenantId, sequences)) {
      const ahead = Math.max(1, roster.waiting + sequences - maxWaiting);
      report({ type: 'refused', requestId, retryAfterMs: this.#throughput.waitFor(ahead, now()) });
      return;
    }
    report({ type: 'admitted', requestId });
    if (constraint === null) open(submission, null);
    else void this.#compile(submission, constraint);
  }

  /** Forgets a submission whose grammar is being compiled. */
  abort(requestId: string): void {
    this.#compiling.delete(requestId);
  }

  /** A sequence has made room for another. */
  recordFinish(now: number): void {
    this.#throughput.recordFinish(now);
  }

  async #compile(submission: Submission, constraint: string): Promise<void> {
    const { compile, open, fail } = this.#options;
    const { requestId, tenantId } = submission;
    this.#compiling.add(requestId);
    try {
      const grammar = await compile(constraint, tenantId);
      // A grammar that is too much work from the start is refused as one that cannot be compiled.
      if (this.#compiling.has(requestId)) grammar.start().mask();
      if (this.#compiling.delete(requestId)) open(submission, grammar);
    } catch (thrown) {
      const { code, message, param } = toApiError(thrown);
      if (!this.#compiling.delete(requestId)) return;
      fail(requestId, { type: 'error', code, message, param, retryable: false });
    }
  }
}
