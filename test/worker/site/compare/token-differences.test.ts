import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tokenDifferences } from '../../../../worker/site/compare/token-differences.ts';

const answer = fc.array(fc.constantFrom(' a', ' b', ' c', '.'), { maxLength: 30 });
const unmarked = (tokens: readonly string[], marks: readonly boolean[]) =>
  tokens.filter((_, index) => !marks[index]);

/** Length of the longest common subsequence by the plain dynamic programme. */
function commonLength(left: readonly string[], right: readonly string[]): number {
  let row = Array.from({ length: right.length + 1 }, () => 0);
  for (const token of left) {
    const next = [0];
    for (const [index, other] of right.entries())
      next.push(token === other ? row[index]! + 1 : Math.max(row[index + 1]!, next[index]!));
    row = next;
  }
  return row.at(-1)!;
}

describe('token differences', () => {
  test('the tokens without marks are the longest common subsequence', () => {
    fc.assert(
      fc.property(answer, answer, (left, right) => {
        const differences = tokenDifferences(left, right);
        expect(differences.left).toHaveLength(left.length);
        expect(differences.right).toHaveLength(right.length);
        expect(unmarked(left, differences.left)).toEqual(unmarked(right, differences.right));
        expect(differences.equal).toBe(commonLength(left, right));
      }),
    );
  });

  test('the first difference is where the answers part', () => {
    fc.assert(
      fc.property(answer, answer, (left, right) => {
        const parting = left.findIndex((token, index) => token !== right[index]);
        const expected = parting >= 0 ? parting : left.length < right.length ? left.length : null;
        expect(tokenDifferences(left, right).first).toBe(expected);
      }),
    );
  });

  test('a replaced token is marked on both sides', () => {
    expect(tokenDifferences(['a', ' king', '.'], ['a', ' queen', '.'])).toEqual({
      left: [false, true, false],
      right: [false, true, false],
      equal: 2,
      first: 1,
    });
  });
});
