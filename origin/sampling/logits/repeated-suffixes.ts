import type { TokenHistory } from '../token-history.ts';
import type { SamplerWorkspace } from '../workspace.ts';

/**
 * For each distance d in 1 … window − 1, how many tokens the end of the history has in common with the text d tokens
 * earlier, both read backwards and within the window: the Z-function of the reversed window, in linear time.
 * @returns a buffer of the workspace, valid until the next call; entry d belongs to distance d.
 */
export function repeatedSuffixes(
  history: TokenHistory,
  window: number,
  workspace: SamplerWorkspace,
): Int32Array {
  const matches = workspace.lengths(window);
  const { tokens } = history;
  const last = history.length - 1;
  // The stretch [from, to) of distances, found last, that is known to equal [0, to − from).
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
