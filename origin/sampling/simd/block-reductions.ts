import { blockMarks } from './block-marks.ts';
import { blockMaxima } from './block-maxima.ts';
import { blockSums } from './block-sums.ts';
import { encodeModule } from './wasm-encode.ts';

/** What the module exports; addresses in bytes of its memory, at least one block. */
export interface BlockReductions {
  /** Writes each block's largest logit; 0 where one of them may be NaN or +∞. */
  maxima(row: number, blocks: number, results: number): number;
  /** Writes each block's Σ e^((z − highest) · coldness). */
  sums(row: number, blocks: number, results: number, highest: number, coldness: number): void;
  /** Writes a bit for each logit, the lowest first: whether it is at least `cut`. Reads each block's largest at `maxima`. */
  marks(row: number, blocks: number, results: number, cut: number, maxima: number): void;
}

/** IEEE operations alone, in an order that nothing changes: the same bits on every machine. */
export function blockReductions(): Uint8Array<ArrayBuffer> {
  return encodeModule([blockMaxima(), blockSums(), blockMarks()]);
}
