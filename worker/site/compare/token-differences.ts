import { diffArrays } from 'diff';

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

/** Compares two answers token by token: the fewest insertions and deletions, after E. W. Myers (1986). */
export function tokenDifferences(left: readonly string[], right: readonly string[]): TokenDifferences {
  const changes = diffArrays([...left], [...right]);
  const marks = (changed: 'added' | 'removed', absent: 'added' | 'removed') =>
    changes.flatMap((change) => (change[absent] ? [] : change.value.map(() => change[changed])));
  const marked = { left: marks('removed', 'added'), right: marks('added', 'removed') };
  const firsts = [marked.left.indexOf(true), marked.right.indexOf(true)].filter((index) => index >= 0);
  return {
    ...marked,
    equal: marked.left.filter((changed) => !changed).length,
    first: firsts.length === 0 ? null : Math.min(...firsts),
  };
}
