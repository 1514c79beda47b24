import { type Breaker, Breakers, LatestBreaker } from '../dry-breakers.ts';
import type { TokenHistory } from '../token-history.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import type { LogitProcessorFactory } from './processor.ts';

/** ln of the largest float32: limits the penalty's growth. */
const MAX_LOG = 88.7228391;

const NO_BREAKERS: readonly Breaker[] = [];

/**
 * DRY, "don't repeat yourself" (p-e-w's proposal for text-generation-webui; llama.cpp's algorithm).
 *
 * A token that would prolong a repeat of m ≥ allowed tokens gets z ← z − multiplier · base^(m − allowed). m
 * is the length of the longest suffix of the history that also precedes an earlier occurrence of the token.
 * Breakers end a repeat: m counts back to the latest one only. A token that is a breaker itself is never
 * penalised.
 */
export const dry: LogitProcessorFactory = (parameters, tokenBytes, workspace) => {
  const { dryMultiplier, dryBase, dryAllowedLength, dryPenaltyLastN, dryBreakers = NO_BREAKERS } = parameters;
  if (dryMultiplier === 0 || dryBase < 1 || dryPenaltyLastN === 0) return null;
  const breakers = workspace.breakers.get(dryBreakers) ?? new Breakers(dryBreakers, tokenBytes);
  workspace.breakers.set(dryBreakers, breakers);
  const latest = new LatestBreaker(breakers);
  const maxExcess = dryBase > 1.000001 ? Math.floor(MAX_LOG / Math.log(dryBase)) : Number.POSITIVE_INFINITY;
  const { longestRepeat, ids: repeated } = workspace;
  return {
    apply(logits, history) {
      const window = dryPenaltyLastN < 0 ? history.length : Math.min(dryPenaltyLastN, history.length);
      if (window <= dryAllowedLength) return;
      const unbroken = latest.lengthSince(history, window);
      if (unbroken < dryAllowedLength) return;
      const matches = repeatedSuffixes(history, window, workspace);
      let distinct = 0;
      for (let distance = 1; distance < window; distance++) {
        const length = Math.min(matches[distance]!, unbroken);
        if (length < dryAllowedLength) continue;
        const next = history.tokens[history.length - distance]!;
        // Stored plus one, because a repeat of length 0 counts if the allowed length is 0.
        if (longestRepeat[next] === 0) repeated[distinct++] = next;
        if (longestRepeat[next]! <= length) longestRepeat[next] = length + 1;
      }
      for (let i = 0; i < distinct; i++) {
        const id = repeated[i]!;
        const excess = longestRepeat[id]! - 1 - dryAllowedLength;
        longestRepeat[id] = 0;
        if (breakers.areIn(id)) continue;
        logits.lower(id, dryMultiplier * dryBase ** Math.min(excess, maxExcess));
      }
    },
  };
};

/**
 * Computes the Z-function of the reversed window in linear time. Entry d, for d in 1 … window − 1, is the
 * length of the longest common suffix of the history and the history without its last d tokens.
 * @returns a buffer of the workspace, valid until the next call
 */
function repeatedSuffixes(history: TokenHistory, window: number, workspace: SamplerWorkspace): Int32Array {
  const matches = workspace.lengths(window);
  const { tokens } = history;
  const last = history.length - 1;
  // The latest range [from, to) of distances that is known to match [0, to − from).
  let from = 0;
  let to = 0;
  for (let distance = 1; distance < window; distance++) {
    let length = distance < to ? Math.min(matches[distance - from]!, to - distance) : 0;
    while (distance + length < window && tokens[last - length] === tokens[last - distance - length]) length++;
    matches[distance] = length;
    if (distance + length > to) {
      from = distance;
      to = distance + length;
    }
  }
  return matches;
}
