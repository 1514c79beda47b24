import { Breakers, LatestBreaker } from './dry-breakers.ts';
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
  const texts = parameters.drySequenceBreakers;
  const breakers = workspace.breakers.get(texts) ?? new Breakers(texts, vocabulary);
  workspace.breakers.set(texts, breakers);
  const latest = new LatestBreaker(breakers);
  const longest = dryBase > 1.000001 ? Math.floor(LARGEST_LOG / Math.log(dryBase)) : Number.POSITIVE_INFINITY;
  const { longestRepeat, order: repeated } = workspace;
  return {
    apply(scores, history) {
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
        // Stored plus one, since a repeat of length 0 counts where the allowed length is 0.
        if (longestRepeat[next] === 0) repeated[distinct++] = next;
        if (longestRepeat[next]! <= length) longestRepeat[next] = length + 1;
      }
      for (let i = 0; i < distinct; i++) {
        const id = repeated[i]!;
        const excess = longestRepeat[id]! - 1 - dryAllowedLength;
        longestRepeat[id] = 0;
        if (breakers.of(id).whole) continue;
        const score = scores.get(id);
        const penalised = score - dryMultiplier * dryBase ** Math.min(excess, longest);
        // A penalty discourages; it never forbids.
        if (score >= -LARGEST_FLOAT32) scores.set(id, Math.max(penalised, -LARGEST_FLOAT32));
      }
    },
  };
};
