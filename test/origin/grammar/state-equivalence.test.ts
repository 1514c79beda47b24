import { describe, expect, it } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import type { Program } from '../../../origin/grammar/program/program.ts';
import { NEVER_DISTINGUISHED } from '../../../origin/grammar/program/state-equivalence.ts';
import { GBNF_CASES } from '../../support/grammar/gbnf-cases.ts';
import { SCHEMA_CASES } from '../../support/grammar/schema-cases.ts';
import { randomFrom } from '../../support/random.ts';

/** The lower bound in the tables: no shorter text distinguishes the two states. */
function distinguishingLength(
  { equivalence: { position, distinguishedAt } }: Program,
  a: number,
  b: number,
): number {
  const [from, to] = [position[a]!, position[b]!].sort((x, y) => x - y) as [number, number];
  return Math.min(...distinguishedAt.subarray(from + 1, to + 1));
}

/** The exact length, by breadth-first search over pairs of states; null beyond `limit`. */
function shortestDifference(program: Program, a: number, b: number, limit: number): number | null {
  const seen = new Set<string>();
  let pairs: (readonly [number, number])[] = [[a, b]];
  for (let length = 0; length <= limit; length++) {
    const next: (readonly [number, number])[] = [];
    for (const [x, y] of pairs) {
      if (x === y || seen.has(`${x} ${y}`)) continue;
      seen.add(`${x} ${y}`);
      if (program.ruleOf[x] !== program.ruleOf[y] || program.final[x] !== program.final[y]) return length;
      const [ofX, ofY] = [edges(program, x), edges(program, y)];
      if (ofX.map(({ label }) => label).join() !== ofY.map(({ label }) => label).join()) return length + 1;
      ofX.forEach(({ target }, i) => {
        next.push([target, ofY[i]!.target]);
      });
    }
    pairs = next;
  }
  return null;
}

function edges(program: Program, state: number): { label: string; target: number }[] {
  const found: { label: string; target: number }[] = [];
  for (let i = program.byteOffsets[state]!; i < program.byteOffsets[state + 1]!; i += 3) {
    const label = `${program.byteEdges[i]}-${program.byteEdges[i + 1]}`;
    found.push({ label, target: program.byteEdges[i + 2]! });
  }
  for (let i = program.callOffsets[state]!; i < program.callOffsets[state + 1]!; i += 2) {
    found.push({ label: `call ${program.callEdges[i]}`, target: program.callEdges[i + 1]! });
  }
  return found;
}

const PROGRAMS = [
  ...Object.entries(GBNF_CASES).map(([name, value]) => [name, { type: 'gbnf', value }] as const),
  ...SCHEMA_CASES.map(({ name, schema }) => [name, { type: 'json_schema', value: schema }] as const),
].map(([name, wire]) => [name, compileProgram(wire)] as const);

describe('state equivalence', () => {
  it('never exceeds the length of the shortest distinguishing text', () => {
    const random = randomFrom(17);
    let compared = 0;
    let close = 0;
    for (const [name, program] of PROGRAMS) {
      const { order } = program.equivalence;
      for (let i = 0; i < 40; i++) {
        const at = Math.floor(random() * order.length);
        const other = Math.min(order.length - 1, at + 1 + Math.floor(random() * 4));
        const promised = distinguishingLength(program, order[at]!, order[other]!);
        if (at === other || promised === 0) continue;
        const shortest = shortestDifference(program, order[at]!, order[other]!, 40);
        expect(promised, `${name}: states ${order[at]} and ${order[other]}`).toBeLessThanOrEqual(
          shortest ?? NEVER_DISTINGUISHED,
        );
        compared++;
        if (promised >= 4) close++;
      }
    }
    expect(compared).toBeGreaterThan(2000);
    expect(close).toBeGreaterThan(200);
  });

  it('equals the remaining count within a counted repetition', () => {
    const program = compileProgram({ type: 'regex', value: 'x{0,100}' });
    const chain: number[] = [program.ruleStart[0]!];
    for (let i = 0; i < 100; i++) chain.push(program.byteEdges[program.byteOffsets[chain.at(-1)!]! + 2]!);
    // After 30 of 100 up to 70 can follow, after 20 up to 80: a text of 71 distinguishes them.
    expect(distinguishingLength(program, chain[30]!, chain[20]!)).toBe(71);
    expect(distinguishingLength(program, chain[99]!, chain[98]!)).toBe(2);
  });
});
