import type { TokenHistory } from '../token-history.ts';
import { type Breaker, containsToken } from './dry-breakers.ts';
import { LARGEST_FLOAT32, type LogitProcessorFactory } from './processor.ts';
import { repeatedSuffixes } from './repeated-suffixes.ts';

/** ln of the largest float32, to which the penalty's growth is held. */
const LARGEST_LOG = 88.7228391;

/**
 * DRY, "don't repeat yourself" (p-e-w's proposal for text-generation-webui; llama.cpp's algorithm). A token that would
 * prolong a repeat of m ≥ allowed tokens gets z ← z − multiplier · base^(m − allowed), where m is the longest suffix of
 * the history that also stands before an earlier occurrence of the token. Breakers end a repeat: m counts no further
 * back than the latest one, and a token that is a breaker by itself is never penalised.
 */
export const dry: LogitProcessorFactory = (parameters, vocabulary, workspace) => {
  const { dryMultiplier, dryBase, dryAllowedLength, dryPenaltyLastN } = parameters;
  if (dryMultiplier === 0 || dryBase < 1 || dryPenaltyLastN === 0) return null;
  const breakers = [...new Set(parameters.drySequenceBreakers)]
    .filter((text) => text !== '')
    .map((text) => workspace.breakers.get(text, vocabulary));
  const longest = dryBase > 1.000001 ? Math.floor(LARGEST_LOG / Math.log(dryBase)) : Number.POSITIVE_INFINITY;
  const { longestRepeat, order: repeated } = workspace;
  return {
    apply(scores, history) {
      const window = dryPenaltyLastN < 0 ? history.length : Math.min(dryPenaltyLastN, history.length);
      if (window <= dryAllowedLength) return;
      const unbroken = lengthSinceBreaker(history, window, breakers);
      if (unbroken < dryAllowedLength) return;
      const matches = repeatedSuffixes(history, window, workspace);
      let distinct = 0;
      for (let distance = 1; distance < window; distance++) {
        const length = Math.min(matches[distance]!, unbroken);
        if (length < dryAllowedLength) continue;
        const next = history.tokens[history.length - distance]!;
        // Stored plus one, since a repeat of length 0 counts where the allowed length is 0.
        if (longestRepeat[next] === 0) repeated[distinct++] = next;
        if (longestRepeat[next]! <= length) longestRepeat[next] = length + 1;
      }
      for (let i = 0; i < distinct; i++) {
        const id = repeated[i]!;
        const excess = longestRepeat[id]! - 1 - dryAllowedLength;
        longestRepeat[id] = 0;
        if (breakers.some((breaker) => containsToken(breaker, id))) continue;
        const score = scores.get(id);
        const penalised = score - dryMultiplier * dryBase ** Math.min(excess, longest);
        // A penalty discourages; it never forbids.
        if (score >= -LARGEST_FLOAT32) scores.set(id, Math.max(penalised, -LARGEST_FLOAT32));
      }
    },
  };
};

/** Tokens after the latest breaker within the window; the window where there is none. */
function lengthSinceBreaker(history: TokenHistory, window: number, breakers: readonly Breaker[]): number {
  const { tokens, length } = history;
  for (let after = 0; after < window; after++) {
    const head = tokens[length - 1 - after]!;
    let completed = -1;
    for (const breaker of breakers) {
      if (containsToken(breaker, head)) completed = Math.max(completed, 0);
      for (const tail of breaker.tails.get(head) ?? []) {
        if (tail.length > completed && follows(tokens, length - after, length, tail)) completed = tail.length;
      }
    }
    if (completed >= 0) return after - completed;
  }
  return window;
}

/** Whether these tokens stand from `start` on, before `end`. */
function follows(tokens: Int32Array, start: number, end: number, tail: readonly number[]): boolean {
  if (start + tail.length > end) return false;
  for (let i = 0; i < tail.length; i++) if (tokens[start + i] !== tail[i]) return false;
  return true;
}
