import { toApiError } from '../../shared/errors.ts';
import type { GenerationEvent } from '../../shared/generation.ts';
import type { CompiledGrammar } from '../grammar/constraint.ts';
import type { EmbeddedImage } from '../model/model-runner.ts';
import type { EngineReport, Submission } from './messages.ts';
import { sequenceCount } from './open-request.ts';
import type { Roster } from './running-set.ts';
import { Throughput } from './throughput.ts';

/** Finished sequences that retry-after looks back on. */
const THROUGHPUT_WINDOW = 64;

/** What a request needs besides its submission. */
export interface Preparation {
  readonly grammar: CompiledGrammar | null;
  /** Of each prompt; empty when there are none. */
  readonly images: readonly (readonly EmbeddedImage[])[];
}

const NOTHING: Preparation = { grammar: null, images: [] };

interface Preparing {
  readonly controller: AbortController;
  readonly tenantId: string;
  readonly sequences: number;
}

export interface AdmissionOptions {
  readonly roster: Roster;
  /** Sequences that may wait for a slot. */
  readonly maxWaiting: number;
  /**
   * @param constraint a WireConstraint as JSON
   * @throws ApiError when the grammar is not valid
   */
  readonly compile: (constraint: string, tenantId: string) => CompiledGrammar | Promise<CompiledGrammar>;
  /** Of models that see: the vectors of a submission's images. @throws ApiError when the model fails */
  readonly encodeImages?: (submission: Submission, signal: AbortSignal) => Promise<Preparation['images']>;
  /** Milliseconds, with fractions, on a clock that never goes back. */
  readonly now: () => number;
  readonly report: (report: EngineReport) => void;
  /** The submission of this time is complete: its request may be opened. */
  readonly open: (submission: Submission, preparation: Preparation, submittedAt: number) => void;
  /** The submission has failed; the event is the only one of its request. */
  readonly fail: (requestId: string, error: GenerationEvent) => void;
}

/** From a submission to an open request: room in the queue, an honest retry-after, grammar and images prepared. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #throughput = new Throughput(THROUGHPUT_WINDOW);
  /** By request. */
  readonly #preparing = new Map<string, Preparing>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Requests whose grammar is being compiled or whose images are being encoded. */
  get preparing(): number {
    return this.#preparing.size;
  }

  /** Reports `admitted` or `refused` before anything else is said of the request. */
  submit(submission: Submission): void {
    const { roster, maxWaiting, now, report, open } = this.#options;
    const { requestId, tenantId, constraint, prompts } = submission;
    const submittedAt = now();
    if (roster.hasFreePlace) this.#throughput.resume(submittedAt);
    const sequences = sequenceCount(submission);
    const expected = this.#expected();
    if (!roster.hasRoom(tenantId, sequences, expected)) {
      const promised = [...expected.values()].reduce((sum, count) => sum + count, 0);
      const ahead = Math.max(1, roster.waiting + promised + sequences - maxWaiting);
      report({ type: 'refused', requestId, retryAfterMs: this.#throughput.waitFor(ahead, submittedAt) });
      return;
    }
    report({ type: 'admitted', requestId });
    const isReady = constraint === null && prompts.every(({ images }) => images === undefined);
    if (isReady) open(submission, NOTHING, submittedAt);
    else void this.#prepare(submission, submittedAt);
  }

  /** Forgets a submission that is being prepared. */
  abort(requestId: string): void {
    this.#preparing.get(requestId)?.controller.abort();
    this.#preparing.delete(requestId);
  }

  /** A sequence has made room for another. */
  recordFinish(now: number): void {
    this.#throughput.recordFinish(now);
  }

  /** Sequences of the requests being prepared, by tenant. */
  #expected(): ReadonlyMap<string, number> {
    const expected = new Map<string, number>();
    for (const { tenantId, sequences } of this.#preparing.values()) {
      expected.set(tenantId, (expected.get(tenantId) ?? 0) + sequences);
    }
    return expected;
  }

  async #prepare(submission: Submission, submittedAt: number): Promise<void> {
    const { encodeImages, open, fail } = this.#options;
    const { requestId, tenantId } = submission;
    const controller = new AbortController();
    this.#preparing.set(requestId, { controller, tenantId, sequences: sequenceCount(submission) });
    try {
      const grammar = await this.#compile(submission);
      const images = (await encodeImages?.(submission, controller.signal)) ?? [];
      if (this.#preparing.delete(requestId)) open(submission, { grammar, images }, submittedAt);
    } catch (thrown) {
      const { code, message, param } = toApiError(thrown);
      if (!this.#preparing.delete(requestId)) return;
      fail(requestId, { type: 'error', code, message, param, retryable: code === 'upstream_error' });
    }
  }

  async #compile({ requestId, tenantId, constraint }: Submission): Promise<CompiledGrammar | null> {
    if (constraint === null) return null;
    const grammar = await this.#options.compile(constraint, tenantId);
    // A grammar that is too much work from the start is refused as one that cannot be compiled.
    if (this.#preparing.has(requestId)) grammar.start().mask();
    return grammar;
  }
}
