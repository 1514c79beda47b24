import { blockList } from './block-list.ts';
import { blockMaxima } from './block-maxima.ts';
import { blockSums } from './block-sums.ts';
import { deviations } from './deviations.ts';
import { encodeModule } from './wasm-encode.ts';
import { weights } from './weights.ts';

/** What the module exports; addresses in bytes of its memory, at least one block or number. */
export interface BlockReductions {
  /** Writes each block's largest logit; 0 where one of them may be NaN or +∞. */
  maxima(row: number, blocks: number, results: number): number;
  /** Writes each block's Σ e^x with x = (z − highest) · coldness. */
  sums(row: number, blocks: number, results: number, highest: number, coldness: number): void;
  /** Writes each block's Σ e^x and Σ e^x · x / ln 2. */
  moments(row: number, blocks: number, results: number, highest: number, coldness: number): void;
  /** Writes each block's Σ e^x, and the same of the logits that are at least `cut`. */
  sumsAbove(
    row: number,
    blocks: number,
    results: number,
    highest: number,
    coldness: number,
    cut: number,
  ): void;
  /**
   * Writes the ids of the logits that are at least `cut` and below `limit`; returns where the ids end.
   * @param maxima each block's largest logit
   * @param first the id of the row's first logit
   */
  list(
    row: number,
    blocks: number,
    ids: number,
    cut: number,
    limit: number,
    maxima: number,
    first: number,
  ): number;
  /**
   * Writes of the logits of all blocks that are not −∞ minus their number, Σ (highest − z) and Σ (highest − z)², each as two
   * float64 that add up to it.
   */
  deviations(row: number, blocks: number, results: number, highest: number): void;
  /** Writes e^((z − highest) · coldness) of the tokens whose ids lie between two addresses. */
  weights(row: number, ids: number, end: number, weights: number, highest: number, coldness: number): void;
}

/**
 * IEEE operations alone, in an order that nothing changes: the same bits on every machine.
 * @param shared whether its memory is shared by threads
 */
export function blockReductions(shared: boolean): Uint8Array<ArrayBuffer> {
  const functions = [
    blockMaxima(),
    blockSums('sums', null),
    blockSums('moments', 'moment'),
    blockSums('sumsAbove', 'above'),
    blockList(),
    deviations(),
    weights(),
  ];
  return encodeModule(functions, shared);
}
