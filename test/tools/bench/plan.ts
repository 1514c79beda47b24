import type { Job, Target } from './target.ts';

/** Layers that requests can be measured at. */
export const LAYERS: readonly string[] = ['engine', 'origin', 'worker'];

/** The size of a request. */
export interface TokenCounts {
  readonly promptTokens: number;
  readonly tokens: number;
}

/** Selects the measurements. */
export interface Plan extends TokenCounts {
  readonly concurrency: readonly number[];
  /** Layers to measure. */
  readonly via: readonly string[];
  readonly waves: number;
  /** Where the product and another server take turns. */
  readonly rivalLoads: readonly TokenCounts[];
  readonly figures: boolean;
  /** Whether to measure constrained streams, and other streams during hostile constraints. */
  readonly constraints: boolean;
  /** Memory of the prefix store where it is measured, in MiB. New memory is slower than reused. */
  readonly storeMiB: number;
  /** Prompts of each workload with shared prefixes. */
  readonly prompts: number;
  readonly threads: number;
  /** Another server to measure with the same client; null = none. */
  readonly foreign: Target | null;
}

/** Positions per slot in every measurement. */
export const CONTEXT = 2048;

export type Progress = (share: number, stage: string) => void;

/** Pseudo-random ids in the range that every vocabulary has: plain bytes and the first merges. */
export function tokenIds(seed: number, length: number): number[] {
  let state = (seed * 2654435761 + 1) >>> 0;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 32 + ((state >>> 8) % 224);
  });
}

/** The requests of a load; all prompts differ. */
export const jobOf =
  (plan: Plan) =>
  (index: number): Job => ({ prompt: tokenIds(index, plan.promptTokens), maxTokens: plan.tokens });
