import type { Limits } from '@continuo/shared/tenant.ts';
import { type Budget, emptyBudget, type Period, periodOf, usedIn } from './budget.ts';
import type { Window } from './window.ts';

/** A tenant or one of its keys, with its limits. */
export interface Subject {
  readonly id: string;
  readonly limits: Limits;
}

export interface SubjectState {
  readonly requests: Window;
  readonly tokens: Window;
  readonly day: Budget;
  readonly month: Budget;
  /** Number of reservations held now. */
  running: number;
}

/** The amounts that a running request has reserved. */
export interface QuotaReservation {
  readonly id: string;
  readonly subjects: readonly string[];
  /** Charged tokens: those reserved, or those known when the reservation expired. */
  readonly tokens: number;
  /** The cell of the token window and the periods that were charged. */
  readonly second: number;
  readonly day: number;
  readonly month: number;
  expiresAt: number;
}

export interface QuotaState {
  readonly subjects: Map<string, SubjectState>;
  readonly reservations: Map<string, QuotaReservation>;
}

export interface Claim {
  readonly id: string;
  /** All of them must have room. */
  readonly subjects: readonly Subject[];
  /** Estimated prompt tokens plus the maximum number of generated tokens. */
  readonly tokens: number;
  /** The reservation expires after this many milliseconds unless it is renewed. */
  readonly ttlMs: number;
}

export const emptyQuota = (): QuotaState => ({ subjects: new Map(), reservations: new Map() });

const emptySubject = (): SubjectState => ({
  requests: [],
  tokens: [],
  day: emptyBudget(),
  month: emptyBudget(),
  running: 0,
});

/** Returns the state of a subject; an unknown subject has used nothing. */
export const subjectState = (state: QuotaState, id: string): SubjectState =>
  state.subjects.get(id) ?? emptySubject();

/** Returns the tokens that a subject has used in the current period. */
export const periodUse = (subject: SubjectState, kind: Period, now: number): number =>
  usedIn(subject[kind], periodOf(kind, now));
