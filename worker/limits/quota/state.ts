import type { Limits } from '../../../shared/tenant.ts';
import { type Budget, emptyBudget, type Period, periodOf, usedIn } from './budget.ts';
import type { Window } from './window.ts';

/** Someone with limits: the tenant itself, or one of its keys. */
export interface Subject {
  readonly id: string;
  readonly limits: Limits;
}

export interface SubjectState {
  readonly requests: Window;
  readonly tokens: Window;
  readonly day: Budget;
  readonly month: Budget;
  /** Leases held now. */
  running: number;
}

/** What a running request holds. */
export interface QuotaLease {
  readonly id: string;
  readonly subjects: readonly string[];
  /** Tokens it is charged with: those reserved, or what was known when it ended without a word. */
  readonly tokens: number;
  /** Cell of the token window, and periods, that were charged. */
  readonly second: number;
  readonly day: number;
  readonly month: number;
  expiresAt: number;
}

export interface QuotaState {
  readonly subjects: Map<string, SubjectState>;
  readonly leases: Map<string, QuotaLease>;
}

export interface Claim {
  readonly id: string;
  /** Every one of them must have room. */
  readonly subjects: readonly Subject[];
  /** Prompt tokens (estimated) and the most that may be generated. */
  readonly tokens: number;
  /** The lease ends by itself after this many milliseconds unless it is renewed. */
  readonly leaseMs: number;
}

export type RefusalKind = 'requests' | 'tokens' | 'concurrency' | 'too_large' | Period;

export interface Refusal {
  readonly kind: RefusalKind;
  readonly subject: string;
  readonly limit: number;
  readonly used: number;
  readonly requested: number;
  /** Milliseconds after which the same claim fits if nobody else takes the room; null = waiting does not help. */
  readonly retryAfterMs: number | null;
}

export const emptyQuota = (): QuotaState => ({ subjects: new Map(), leases: new Map() });

const emptySubject = (): SubjectState => ({
  requests: [],
  tokens: [],
  day: emptyBudget(),
  month: emptyBudget(),
  running: 0,
});

/** The state of a subject; an unknown one has used nothing. */
export const subjectState = (state: QuotaState, id: string): SubjectState =>
  state.subjects.get(id) ?? emptySubject();

/** Usage of a subject's period, for the headers and the messages. */
export const periodUse = (subject: SubjectState, kind: Period, now: number): number =>
  usedIn(subject[kind], periodOf(kind, now));
