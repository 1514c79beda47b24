import type { Limits } from '../../../../shared/tenant.ts';

/**
 * A reference implementation of the limits by their definition: keeps a list of all admissions and recounts it for every
 * question. Shares no code with the implementation.
 */

interface Admission {
  readonly id: string;
  readonly subjects: readonly string[];
  readonly at: number;
  /** When its tokens were charged: at the admission, or at the last raise. */
  chargedAt: number;
  tokens: number;
  running: boolean;
  expiresAt: number;
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
    const charged = this.#of(subject).filter(({ chargedAt }) => isInMinute(chargedAt, now));
    return charged.reduce((sum, { tokens }) => sum + tokens, 0);
  }

  runningOf(subject: string): number {
    return this.#of(subject).filter(({ running }) => running).length;
  }

  #periodOf(subject: string, now: number, period: (at: number) => string): number {
    return this.#of(subject)
      .filter(({ chargedAt }) => period(chargedAt) === period(now))
      .reduce((sum, { tokens }) => sum + tokens, 0);
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

  admit(id: string, subjects: readonly string[], tokens: number, now: number, ttlMs: number): void {
    const charge = { at: now, chargedAt: now, tokens };
    this.#admitted.push({ id, subjects, ...charge, running: true, expiresAt: now + ttlMs });
  }

  /** Returns whether the running request may have this many tokens, and charges them if so. */
  raise(id: string, tokens: number, now: number): boolean {
    const admission = this.#admitted.find((candidate) => candidate.id === id && candidate.running);
    if (!admission || tokens <= admission.tokens) return true;
    const { tokens: before } = admission;
    admission.tokens = 0;
    const fits = this.#tokensFit(admission.subjects, tokens, now);
    admission.tokens = fits ? tokens : before;
    if (fits) admission.chargedAt = now;
    return fits;
  }

  settle(id: string, tokens: number): boolean {
    const admission = this.#admitted.find((candidate) => candidate.id === id && candidate.running);
    if (!admission) return false;
    admission.running = false;
    admission.tokens = tokens;
    return true;
  }

  due(now: number): string[] {
    return this.#admitted
      .filter(({ running, expiresAt }) => running && expiresAt <= now)
      .map(({ id }) => id)
      .sort();
  }
}
