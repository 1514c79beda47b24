import { type DrawnToken, type DrawRequest, NEUTRAL_DRAW } from '../../device-draws.ts';
import type { SparseRows } from '../../model-runner.ts';

/** Weights are float32 on a device, and added in another order. */
const ROUNDING = 1e-5;

/** What is tried, one request per row. */
function requestsFor(vocabularySize: number): DrawRequest[] {
  const mask = new Uint32Array(Math.ceil(vocabularySize / 32)).fill(0x55555555);
  const edits = {
    ids: Int32Array.of(0, 2, 4),
    forbidden: Uint8Array.of(1, 0, 0),
    amounts: Float64Array.of(0, 1, 0, 0, 5, 1.5, 0.25, 0, -1, 2, 0, 1),
  };
  return [
    { ...NEUTRAL_DRAW, isGreedy: true, listed: 5 },
    { ...NEUTRAL_DRAW, uniform: 0.123 },
    { ...NEUTRAL_DRAW, coldness: 1.25, topK: 40, share: 0.95, uniform: 0.9 },
    { ...NEUTRAL_DRAW, share: 0.9, uniform: 0.6 },
    { ...NEUTRAL_DRAW, coldness: 2, share: 0.99, ratio: 0.01, mask, edits, listed: 20, uniform: 0.3 },
  ];
}

/**
 * Compares tokens that a device draws with plain draws from whole rows. Returns what differs, or null.
 * @param run computes the same batch each time, and returns its logits
 */
export function drawFault(
  sparse: SparseRows,
  run: (draws?: readonly (DrawRequest | null)[]) => Float32Array,
): string | null {
  const { vocabularySize } = sparse.logits;
  const expected = run().slice();
  const rows = expected.length / vocabularySize;
  const requests = requestsFor(vocabularySize);
  const rowOf = (all: Float32Array, row: number) =>
    all.subarray(row * vocabularySize, (row + 1) * vocabularySize);
  for (let first = 0; first < requests.length; first += rows) {
    const draws = Array.from({ length: rows }, (_, row) => requests[first + row] ?? null);
    const drawn = run(draws);
    for (const [row, request] of draws.entries()) {
      if (request === null) continue;
      const token = sparse.draws?.drawn(rowOf(drawn, row)) ?? null;
      const fault = tokenFault(token, rowOf(expected, row), request);
      if (fault !== null) return `draw ${first + row}: ${fault}`;
      sparse.complete(rowOf(drawn, row));
      const whole = rowOf(expected, row);
      if (rowOf(drawn, row).some((logit, id) => logit !== whole[id]))
        return `draw ${first + row} changed its row`;
    }
  }
  return null;
}

function tokenFault(token: DrawnToken | null, row: Float32Array, request: DrawRequest): string | null {
  if (token === null) return 'no token';
  const weights = keptWeights(editedRow(row, request), request);
  const sum = (end: number) => weights.subarray(0, end).reduce((total, weight) => total + weight, 0);
  const [before, total] = [sum(token.id), sum(weights.length)];
  const target = request.uniform * total;
  const slack = ROUNDING * total;
  const isRight = before - slack <= target && target <= before + weights[token.id]! + slack;
  return isRight && weights[token.id]! > 0 ? scoresFault(token, row, request) : `token ${token.id}`;
}

/** Returns the weights of the tokens that may be drawn, and 0 for the others. */
function keptWeights(
  row: Float32Array,
  { isGreedy, coldness, topK, share, ratio }: DrawRequest,
): Float64Array {
  const highest = row.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY);
  const weights = Float64Array.from(row, (logit) => Math.exp((logit - highest) * coldness));
  const ordered = weights.toSorted().reverse();
  let kept = topK > 0 ? topK : ordered.length;
  if (share < 1) {
    const least = share * ordered.subarray(0, kept).reduce((total, weight) => total + weight, 0);
    let reached = 0;
    kept = ordered.findIndex((weight) => (reached += weight) >= least) + 1;
  }
  if (isGreedy) kept = 1;
  const boundary = ordered[kept - 1]!;
  let equal = kept - ordered.indexOf(boundary);
  return weights.map((weight) => {
    const isKept = weight > boundary || (weight === boundary && equal-- > 0);
    return isKept && weight >= ratio ? weight : 0;
  });
}

function editedRow(row: Float32Array, { edits, mask }: DrawRequest): Float32Array {
  const edited = row.slice();
  for (const [entry, id] of (edits?.ids ?? []).entries()) {
    const [bias, penalty, minus, lowered] = edits!.amounts.subarray(4 * entry, 4 * entry + 4);
    edited[id]! += bias!;
    edited[id] = edited[id]! > 0 ? edited[id]! / penalty! : edited[id]! * penalty!;
    edited[id]! -= minus!;
    edited[id] = edits!.forbidden[entry] ? Number.NEGATIVE_INFINITY : edited[id]! - lowered!;
  }
  if (mask === null) return edited;
  return edited.map((logit, id) => ((mask[id >>> 5]! >>> (id & 31)) & 1 ? logit : Number.NEGATIVE_INFINITY));
}

function scoresFault({ id, scores }: DrawnToken, row: Float32Array, { listed }: DrawRequest): string | null {
  if (listed === null || scores === null) return listed === null ? null : 'no scores';
  const sum = row.reduce((total, logit) => total + Math.exp(logit - scores.normalizer), 0);
  if (!(Math.abs(sum - 1) < ROUNDING)) return 'another sum of weights';
  if (scores.logit !== row[id]) return 'another logit';
  const isListed = scores.top.every(([token, logit], rank) => {
    const [, previous = Number.POSITIVE_INFINITY] = scores.top[rank - 1] ?? [];
    return row[token] === logit && logit <= previous;
  });
  const least = scores.top.at(-1)?.[1] ?? Number.NEGATIVE_INFINITY;
  const above = row.reduce((count, logit) => count + Number(logit > least), 0);
  return isListed && scores.top.length === listed && above < listed ? null : 'other listed tokens';
}
