import { type CodePoints, codePoints, complementCodePoints, pairs } from '../automaton/code-points.ts';
import type { WorkBudget } from '../work-budget.ts';
import { bothCases } from './character-sets.ts';
import { classEscape, type RegexCursor } from './regex-cursor.ts';

/**
 * `[…]` or `[^…]`; the cursor stands on the opening bracket. An empty class matches nothing. Where case is ignored, a
 * negated class leaves out its letters in either case.
 */
export function characterClass(cursor: RegexCursor, budget: WorkBudget, ignoreCase = false): CodePoints {
  cursor.take('[');
  const negated = cursor.take('^');
  const ranges: [number, number][] = [];
  while (!cursor.take(']')) {
    budget.spend(10);
    const low = member(cursor, budget);
    if (cursor.peek === '-' && cursor.rest(2) !== '-]') {
      cursor.take('-');
      ranges.push(span(cursor, low, member(cursor, budget)));
    } else {
      ranges.push(...pairs(low));
    }
  }
  const members = ignoreCase ? bothCases(codePoints(ranges), budget) : codePoints(ranges);
  return negated ? complementCodePoints(members) : members;
}

function member(cursor: RegexCursor, budget: WorkBudget): CodePoints {
  if (cursor.peek !== '\\') {
    const char = cursor.character();
    return [char, char];
  }
  if (cursor.take('\\b')) return [8, 8];
  return classEscape(cursor, budget);
}

function span(cursor: RegexCursor, low: CodePoints, high: CodePoints): [number, number] {
  const isCharacter = (set: CodePoints): boolean => set.length === 2 && set[0] === set[1];
  if (!isCharacter(low) || !isCharacter(high)) throw cursor.error('A range needs a character on either side');
  if (high[0]! < low[0]!) throw cursor.error('The character range is reversed');
  return [low[0]!, high[0]!];
}
