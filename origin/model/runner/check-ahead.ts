import { type DrawRequest, NEUTRAL_DRAW } from '../device-draws.ts';
import type { DecodeBatch, SparseRows } from '../model-runner.ts';

/** Runs of the check, of which all but the first begin before the tokens of the last are read. */
const STEPS = 4;

const drawAt = (row: number, step: number): DrawRequest => ({
  ...NEUTRAL_DRAW,
  isGreedy: row % 2 === 0,
  coldness: 0.5,
  uniform: ((7 * row + 3 * step) % 16) / 16,
});

interface Steps {
  readonly hasBegun: boolean;
  decode(batch: DecodeBatch, asked: DecodeBatch & { readonly firstRow: number }): Float32Array;
}

/**
 * Compares runs that begin with the tokens of the device with runs that begin with those of the host. Returns
 * what differs, or null.
 * @param first the batch of the first run, at the start of each slot
 */
export function aheadFault(sparse: SparseRows, graphs: Steps, first: DecodeBatch): string | null {
  const { vocabularySize } = sparse.logits;
  const { rows } = first;
  const run = (continues: boolean) => {
    const seen: { readonly tokens: Int32Array; readonly begun: boolean }[] = [];
    let { tokens } = first;
    for (let step = 0; step < STEPS; step++) {
      const begun = graphs.hasBegun;
      const draws = Array.from({ length: rows }, (_, row) => drawAt(row, step));
      const positions = first.positions.map((position) => position + step);
      const batch = { ...first, tokens, positions, draws, continues: continues && step < STEPS - 1 };
      const logits = graphs.decode(batch, { ...batch, firstRow: 0 });
      tokens = Int32Array.from({ length: rows }, (_, row) => {
        const of = logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
        return sparse.draws?.drawn(of)?.id ?? -1;
      });
      seen.push({ tokens, begun });
    }
    return seen;
  };
  const expected = run(false);
  for (const [step, { tokens, begun }] of run(true).entries()) {
    if (begun !== step > 0) return `run ${step + 1} did not begin before the tokens of the last were read`;
    const row = tokens.findIndex((token, at) => token !== expected[step]!.tokens[at]);
    if (row >= 0) return `run ${step + 1} gives row ${row} another token`;
  }
  return null;
}
