import { minP } from './min-p.ts';
import { topP } from './top-p.ts';
import type { TruncationFactory } from './truncation.ts';
import { typical } from './typical.ts';
import { xtc } from './xtc.ts';

/**
 * Truncations in the order in which they apply, each on what the one before left, renormalised. Top-nσ and top-k come
 * before them all: shortlist.ts applies those while it collects the candidates.
 */
export const TRUNCATIONS: readonly TruncationFactory[] = [typical, topP, minP, xtc];
