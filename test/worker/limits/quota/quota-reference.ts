import type { Limits } from '../../../../shared/tenant.ts';

/**
 * A reference implementation of the limits by their definition: keeps a list of all admissions and recounts
 * it for every question. Shares no code with the implementation.
 */

interface Admission {
  readonly id: string;
  readonly subjects: readonly string[];
  readonly at: number;
  /** Its tokens, one entry for each: when it was charged. Used in this order. */
  chargedAt: number[];
  running: boolean;
}

const second = (at: number) => Math.floor(at / 1000);
const day = (at: number) => new Date(at).toISOString().slice(0, 10);
const month = (at: number) => new Date(at).toISOString().slice(0, 7);

const within = (limit: number | null, amount: number) => limit === null || amount <= limit;

/** True for the last 60 clock seconds, including the current one. */
const isInMinute = (at: number, now: number) => second(at) > second(now) - 60;

export class ReferenceQuota {
  readonly #limits: Readonly<Record<string, Limits>>;
  #admitted: Admission[] = [];

  constructor(limits: Readonly<Record<string, Limits>>) {
    this.#limits = limits;
  }

  #of(subject: string): Admission[] {
    return this.#admitted.filter((admission) => admission.subjects.includes(subject));
  }

  requestsOf(subject: string, now: number): number {
    return this.#of(subject).filter(({ at }) => isInMinute(at, now)).length;
  }

  tokensOf(subject: string, now: number): number {
    return this.#charged(subject).filter((at) => isInMinute(at, now)).length;
  }

  #charged(subject: string): number[] {
    return this.#of(subject).flatMap(({ chargedAt }) => chargedAt);
  }

  runningOf(subject: string): number {
    return this.#of(subject).filter(({ running }) => running).length;
  }

  #periodOf(subject: string, now: number, period: (at: number) => string): number {
    return this.#charged(subject).filter((at) => period(at) === period(now)).length;
  }

  fits(subjects: readonly string[], tokens: number, now: number): boolean {
    return (
      this.#tokensFit(subjects, tokens, now) &&
      subjects.every((subject) => {
        const limits = this.#limits[subject]!;
        return (
          within(limits.requestsPerMinute, this.requestsOf(subject, now) + 1) &&
          within(limits.concurrentRequests, this.runningOf(subject) + 1)
        );
      })
    );
  }

  #tokensFit(subjects: readonly string[], tokens: number, now: number): boolean {
    return subjects.every((subject) => {
      const limits = this.#limits[subject]!;
      return (
        within(limits.tokensPerMinute, this.tokensOf(subject, now) + tokens) &&
        within(limits.tokensPerDay, this.#periodOf(subject, now, day) + tokens) &&
        within(limits.tokensPerMonth, this.#periodOf(subject, now, month) + tokens)
      );
    });
  }

  admit(id: string, subjects: readonly string[], tokens: number, now: number): void {
    const chargedAt = new Array<number>(tokens).fill(now);
    this.#admitted.push({ id, subjects, at: now, chargedAt, running: true });
  }

  /**
   * Raises a running request to so many tokens; if it grows, one by one for as long as there is room. Returns
   * whether it got all of them, or any if it grows.
   */
  raise(id: string, tokens: number, grows: boolean, now: number): boolean {
    const admission = this.#admitted.find((candidate) => candidate.id === id && candidate.running);
    const { subjects = [], chargedAt = [] } = admission ?? {};
    const missing = tokens - chargedAt.length;
    if (!admission || missing <= 0) return true;
    const fits = (count: number) => this.#tokensFit(subjects, count, now);
    const whole = subjects.every((subject) => within(this.#limits[subject]!.tokensPerMinute, tokens));
    if (!grows) {
      if (!whole || !fits(missing)) return false;
      for (let count = 0; count < missing; count += 1) chargedAt.push(now);
      return true;
    }
    let got = 0;
    for (; got < missing && fits(1); got += 1) chargedAt.push(now);
    return got > 0;
  }

  settle(id: string, tokens: number): boolean {
    const admission = this.#admitted.find((candidate) => candidate.id === id && candidate.running);
    if (!admission) return false;
    admission.running = false;
    const { chargedAt } = admission;
    const latest = chargedAt.at(-1) ?? admission.at;
    // More than was reserved counts when the last of it was charged.
    while (chargedAt.length < tokens) chargedAt.push(latest);
    chargedAt.length = tokens;
    return true;
  }
}
