import type { Program } from '../program/program.ts';
import type { WorkBudget } from '../work-budget.ts';

/** Pairs compared before the question is given up. */
const MAX_PAIRS = 200;

/**
 * True when no text of at most `steps` bytes tells two states of a rule apart: neither whether it can be read nor
 * whether the rule ends after it. Long counted repetitions are chains of such states.
 */
export function areSimilar(
  program: Program,
  a: number,
  b: number,
  steps: number,
  budget: WorkBudget,
): boolean {
  const seen = new Set<number>();
  let frontier: [number, number][] = [[a, b]];
  for (let step = 0; step <= steps && frontier.length > 0; step++) {
    const next: [number, number][] = [];
    for (const [x, y] of frontier) {
      const key = x * program.ruleOf.length + y;
      if (x === y || seen.has(key)) continue;
      if (seen.add(key).size > MAX_PAIRS || !haveEqualEdges(program, x, y)) return false;
      budget.spend(20);
      for (
        let i = program.byteOffsets[x]!, j = program.byteOffsets[y]!;
        i < program.byteOffsets[x + 1]!;
        i += 3, j += 3
      ) {
        next.push([program.byteEdges[i + 2]!, program.byteEdges[j + 2]!]);
      }
      for (
        let i = program.callOffsets[x]!, j = program.callOffsets[y]!;
        i < program.callOffsets[x + 1]!;
        i += 2, j += 2
      ) {
        next.push([program.callEdges[i + 1]!, program.callEdges[j + 1]!]);
      }
    }
    frontier = next;
  }
  return true;
}

/** Same bytes, same calls, same end; targets apart. */
function haveEqualEdges(
  { final, byteOffsets, byteEdges, callOffsets, callEdges }: Program,
  x: number,
  y: number,
): boolean {
  const bytes = byteOffsets[x + 1]! - byteOffsets[x]!;
  const calls = callOffsets[x + 1]! - callOffsets[x]!;
  if (final[x] !== final[y]) return false;
  if (bytes !== byteOffsets[y + 1]! - byteOffsets[y]! || calls !== callOffsets[y + 1]! - callOffsets[y]!)
    return false;
  for (let i = 0; i < bytes; i++) {
    const isTarget = i % 3 === 2;
    if (!isTarget && byteEdges[byteOffsets[x]! + i] !== byteEdges[byteOffsets[y]! + i]) return false;
  }
  for (let i = 0; i < calls; i += 2) {
    if (callEdges[callOffsets[x]! + i] !== callEdges[callOffsets[y]! + i]) return false;
  }
  return true;
}
