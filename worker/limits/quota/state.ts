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

/** Tokens that were charged together: the cell of the window and the periods to which they count. */
export interface Charge {
  readonly tokens: number;
  readonly second: number;
  readonly day: number;
  readonly month: number;
}

/** The amounts that a running request has reserved. */
export interface QuotaReservation {
  readonly id: string;
  readonly subjects: readonly string[];
  /** Oldest first. A reservation grows by one charge at a time, and its request uses them in this order. */
  readonly charges: readonly Charge[];
  /** The tokens are limited, so the request is billed for no more than it has reserved. */
  readonly limited: boolean;
  expiresAt: number;
}

/** Returns the tokens that a reservation is charged. */
export const reservedTokens = ({ charges }: Pick<QuotaReservation, 'charges'>): number =>
  charges.reduce((sum, { tokens }) => sum + tokens, 0);

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
