import type { Job, Target } from './target.ts';

/** What a request may be measured through. */
export const LAYERS: readonly string[] = ['engine', 'origin', 'worker'];

/** What is to be measured. */
export interface Plan {
  readonly concurrency: readonly number[];
  /** The layers to go through. */
  readonly via: readonly string[];
  readonly waves: number;
  readonly tokens: number;
  readonly promptTokens: number;
  readonly figures: boolean;
  /** Seconds of overload by 200 clients of two tenants; 0 = none. */
  readonly soakSeconds: number;
  /** What constraints cost those who use them and, by hostile ones, everybody else. */
  readonly constraints: boolean;
  readonly threads: number;
  /** Another server to measure with the same client. */
  readonly foreign: Target | null;
}

/** Positions per slot in every measurement. */
export const CONTEXT = 2048;

export type Progress = (share: number, stage: string) => void;

/** Repeatable "random" ids in the range every vocabulary has: plain bytes and the first merges. */
export function tokenIds(seed: number, length: number): number[] {
  let state = (seed * 2654435761 + 1) >>> 0;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 32 + ((state >>> 8) % 224);
  });
}

/** The requests of a load: prompts that all differ. */
export const jobOf =
  (plan: Plan) =>
  (index: number): Job => ({ prompt: tokenIds(index, plan.promptTokens), maxTokens: plan.tokens });
