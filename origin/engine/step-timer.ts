import type { StepReport } from './messages.ts';

/** Splits the time of one step between the model, sampling and everything else. */
export class StepTimer {
  readonly #now: () => number;
  readonly #spent = { model: 0, sampling: 0, other: 0 };
  #last: number;

  /** @param now milliseconds, with fractions */
  constructor(now: () => number) {
    this.#now = now;
    this.#last = now();
  }

  /** Books the time since the last mark; the time of this mark. */
  mark(part: 'model' | 'sampling' | 'other'): number {
    const now = this.#now();
    this.#spent[part] += now - this.#last;
    this.#last = now;
    return now;
  }

  report(kind: StepReport['kind'], rows: number, tokens: number, drafted = 0, accepted = 0): StepReport {
    this.mark('other');
    const { model, sampling, other } = this.#spent;
    return { kind, rows, tokens, drafted, accepted, modelMs: model, samplingMs: sampling, otherMs: other };
  }
}
