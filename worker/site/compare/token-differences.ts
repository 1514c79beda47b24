/** Which tokens of two answers have no counterpart in the other. */
export interface TokenDifferences {
  /** One entry per token: true = not in the other answer at this place. */
  readonly left: readonly boolean[];
  readonly right: readonly boolean[];
  /** Number of tokens that both have. */
  readonly equal: number;
  /** Index of the first token that differs; null if the answers are equal. */
  readonly first: number | null;
}

/**
 * Compares two answers token by token: the fewest insertions and deletions, by a longest common subsequence
 * whose rows are bits (H. Hyyrö, 2004). Two answers of 1,000 other tokens take about 1 ms.
 */
export function tokenDifferences(left: readonly string[], right: readonly string[]): TokenDifferences {
  const marks = { left: left.map(() => true), right: right.map(() => true) };
  const rows = commonRows(left, right);
  const isSet = (row: number, at: number) => ((rows[row]! >> BigInt(at)) & 1n) === 1n;
  let [at, row, equal] = [left.length, right.length, 0];
  while (at > 0 && row > 0) {
    // A bit that is not set: with this token of the left, the common subsequence is longer.
    if (isSet(row, at - 1)) at--;
    else if (!isSet(row - 1, at - 1)) row--;
    else {
      equal++;
      marks.left[--at] = false;
      marks.right[--row] = false;
    }
  }
  const firsts = [marks.left.indexOf(true), marks.right.indexOf(true)].filter((index) => index >= 0);
  return { ...marks, equal, first: firsts.length === 0 ? null : Math.min(...firsts) };
}

/** Returns a row before the first token of the right, and one after each. */
function commonRows(left: readonly string[], right: readonly string[]): bigint[] {
  const places = new Map<string, bigint>();
  for (const [at, token] of left.entries()) places.set(token, (places.get(token) ?? 0n) | (1n << BigInt(at)));
  const all = (1n << BigInt(left.length)) - 1n;
  const rows = [all];
  for (const token of right) {
    const row = rows.at(-1)!;
    const matches = row & (places.get(token) ?? 0n);
    rows.push(((row + matches) | (row - matches)) & all);
  }
  return rows;
}
