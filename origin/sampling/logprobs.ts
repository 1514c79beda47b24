import { LOWEST_LOGPROB, type LogprobRow } from '@continuo/shared/logprob.ts';
import type { DrawnToken } from '../model/device-draws.ts';
import { BLOCK_SIZE, type SparseRow } from '../model/sparse-logits.ts';
import { insertLargest, kthMaximum } from './largest.ts';
import type { SamplerWorkspace } from './workspace.ts';

export interface TokenLogprobs {
  readonly logprob: number;
  /** [id, logprob] of the most likely tokens or of listed ones, best first, lower id first if equal. */
  readonly top: readonly (readonly [number, number])[];
  /** Position of the token by its logit, from 1; absent if it was not asked for. */
  readonly rank?: number;
  /** Of all tokens, or of the most likely ones; absent if not asked for. */
  readonly row?: LogprobRow;
}

/**
 * Returns the logprobs of a token and of the `top` most likely ones, or of the ids in `top`: the log-softmax
 * of the raw row, z − ln Σ e^z, rounded to float32. `Row.weigh` computes the sum. A token has the same bits
 * in `logprob` and in `top`.
 * @param logits one raw row, one float32 per token id; not modified
 * @param isCurrent whether the workspace's row is this one already
 * @param sparse what is known of a row of which not all logits are here
 * @throws InvalidLogitsError, NoCandidatesError, AbsentLogits as `Row.begin`
 */
export function tokenLogprob(
  logits: Float32Array,
  id: number,
  top: number | readonly number[],
  workspace: SamplerWorkspace,
  isCurrent = false,
  sparse: SparseRow | null = null,
): TokenLogprobs {
  if (!isCurrent) workspace.row.begin(logits, sparse);
  const normalizer = normalizerOf(workspace);
  const logprobOf = (token: number): number =>
    Math.max(LOWEST_LOGPROB, Math.fround(logits[token]! - normalizer));
  const ids = typeof top === 'number' ? topIds(top, workspace) : sorted(top, logits);
  const listed: [number, number][] = [];
  for (const token of ids) listed.push([token, logprobOf(token)]);
  return { logprob: logprobOf(id), top: listed };
}

/** The same as `tokenLogprob` for a token that a device has drawn. */
export function drawnLogprobs({ logit, normalizer, top }: NonNullable<DrawnToken['scores']>): TokenLogprobs {
  const logprobOf = (of: number): number => Math.max(LOWEST_LOGPROB, Math.fround(of - normalizer));
  return { logprob: logprobOf(logit), top: top.map(([id, of]) => [id, logprobOf(of)] as const) };
}

/** Returns ln Σ e^z of the workspace's row. */
export function normalizerOf({ row }: SamplerWorkspace): number {
  row.coldness = 1;
  return row.highest + Math.log(row.weigh());
}

/** Returns the position of a token in the workspace's row, from 1; of equal logits, lower ids first. */
export function tokenRank(id: number, { row: { logits, maxima } }: SamplerWorkspace): number {
  const logit = logits[id]!;
  let rank = 1;
  for (let block = 0; block < maxima.length; block++) {
    if (maxima[block]! < logit) continue;
    const start = block * BLOCK_SIZE;
    const end = Math.min(start + BLOCK_SIZE, logits.length);
    for (let i = start; i < end; i++) {
      if (logits[i]! > logit || (logits[i]! === logit && i < id)) rank++;
    }
  }
  return rank;
}

const sorted = (ids: readonly number[], logits: Float32Array): readonly number[] =>
  ids.toSorted((a, b) => logits[b]! - logits[a]! || a - b);

/** Ids of the largest logits, best first; valid until the workspace is used again. */
function topIds(count: number, workspace: SamplerWorkspace): Int32Array {
  const { row, ids } = workspace;
  const { logits, maxima } = row;
  const limit = Math.min(count, logits.length);
  if (limit === 0) return ids.subarray(0, 0);
  let cut = Number.NEGATIVE_INFINITY;
  // At least `limit` logits reach the smallest of the blocks' `limit` largest maxima.
  if (limit < maxima.length) cut = kthMaximum(limit, workspace);
  row.requireAbove(cut);
  let listed = 0;
  for (let block = 0; block < maxima.length; block++) {
    if (maxima[block]! < cut) continue;
    const start = block * BLOCK_SIZE;
    const end = Math.min(start + BLOCK_SIZE, logits.length);
    listed = insertLargest(logits, start, end, ids, listed, limit, cut);
  }
  return ids.subarray(0, listed);
}
