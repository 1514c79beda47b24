import { type DrawRequest, NEUTRAL_DRAW } from '../../device-draws.ts';
import type {
  BegunPrefill,
  DecodeBatch,
  ModelShape,
  PrefillChunk,
  SlotToken,
  SparseRows,
} from '../../model-runner.ts';

/** Runs of the check, of which all but the first begin before the tokens of the last are read. */
const STEPS = 4;
/** Tokens of the prompt that is compared. */
const CHECKED_TOKENS = 32;

const drawAt = (row: number, step: number): DrawRequest => ({
  ...NEUTRAL_DRAW,
  isGreedy: row % 2 === 0,
  coldness: 0.5,
  uniform: ((7 * row + 3 * step) % 16) / 16,
});

interface Steps {
  hasBegun(row: SlotToken): boolean;
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
      const draws = Array.from({ length: rows }, (_, row) => drawAt(row, step));
      const positions = first.positions.map((position) => position + step);
      const begun = graphs.hasBegun({ slot: 0, token: tokens[0]!, position: positions[0]! });
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

/** What a prompt is compared with: a runner that computes it behind its decode runs. */
interface AheadRunner {
  readonly shape: ModelShape;
  readonly sparse: SparseRows | null;
  decode(batch: DecodeBatch): Float32Array;
  beginPrefill(chunks: readonly PrefillChunk[]): BegunPrefill | null;
}

/**
 * Compares a prompt that begins behind a decode run, and is waited for behind the next one, with one that is
 * waited for at once. Returns what differs, or null.
 */
export function promptFault(
  runner: AheadRunner,
  prompts: { begin(chunks: readonly PrefillChunk[], waits: boolean): BegunPrefill | null },
): string | null {
  const { slots, vocabularySize, contextLength, prefillChunk } = runner.shape;
  const length = Math.min(prefillChunk, contextLength - STEPS, CHECKED_TOKENS);
  if (slots < 2 || length < 1) return null;
  const prompt = {
    slot: 1,
    start: 0,
    tokens: Int32Array.from({ length }, (_, at) => (11 * at + 5) % vocabularySize),
    logitsAt: Int32Array.of(length - 1),
  };
  const draws = [{ ...NEUTRAL_DRAW, isGreedy: true }];
  const decode = (token: number, position: number, continues = true): number => {
    const [tokens, positions] = [Int32Array.of(token), Int32Array.of(position)];
    const logits = runner.decode({ firstSlot: 0, rows: 1, tokens, positions, draws, continues });
    return runner.sparse?.draws?.drawn(logits.subarray(0, vocabularySize))?.id ?? 0;
  };
  const expected = prompts.begin([prompt], true)!.finish().slice();
  const first = decode(1, 0);
  const begun = runner.beginPrefill([prompt])!;
  const second = decode(first, 1);
  const logits = begun.finish();
  const id = expected.findIndex((logit, at) => logit !== logits[at]);
  decode(second, 2, false);
  return id < 0 ? null : `token ${id} of a prompt has another logit`;
}
