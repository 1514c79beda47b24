import type { Constraint } from '../../../origin/grammar/runtime/constraint.ts';
import { bytesOf, type TokenBytes } from '../../../origin/tokenizer/token-bytes.ts';
import type { Bnf } from './oracle/bnf.ts';
import { EarleyChart } from './oracle/earley.ts';
import { oracleMask, pathsInByteOrder, readPaths } from './oracle/oracle-mask.ts';
import { allowedTokens } from './random-walk.ts';

export interface ComparisonOptions {
  readonly tokens: TokenBytes;
  readonly random: () => number;
  readonly walks: number;
  readonly steps: number;
}

/**
 * Walks at random through the texts of a grammar. Compares each bit of each mask, and whether the text may
 * end, with the oracle. Returns the first difference as text, or null; `compared` is the number of masks.
 */
export function firstDifference(
  start: () => Constraint,
  bnf: Bnf,
  options: ComparisonOptions,
): { difference: string | null; compared: number } {
  const sorted = pathsInByteOrder(options.tokens);
  let compared = 0;
  for (let walk = 0; walk < options.walks; walk++) {
    const constraint = start();
    const chart = new EarleyChart(bnf);
    const text: Uint8Array[] = [];
    for (let step = 0; step < options.steps; step++) {
      const expected = oracleMask(chart, sorted);
      const found = allowedTokens(constraint.mask());
      compared++;
      const difference = describe(expected, found, options.tokens);
      if (difference || constraint.accepting !== chart.accepting) {
        const end = `end ${constraint.accepting}, expected ${chart.accepting}`;
        const where = Buffer.concat(text).toString();
        return { difference: `after ${JSON.stringify(where)}: ${difference ?? end}`, compared };
      }
      if (found.length === 0) break;
      const token = choose(found, options);
      constraint.accept(token);
      const paths = readPaths(options.tokens, token).filter((path) => chart.accepts(path));
      // The chart follows one path. A token that matches as text and by id ends the walk.
      if (paths.length > 1) break;
      for (const byte of paths[0]!) chart.push(byte);
      text.push(bytesOf(options.tokens, token));
    }
  }
  return { difference: null, compared };
}

/** Chooses a long token in half of the cases, because long tokens cross more rules. */
function choose(found: readonly number[], { random, tokens }: ComparisonOptions): number {
  const long = found.filter((id) => bytesOf(tokens, id).length > 1);
  const pool = long.length > 0 && random() < 0.5 ? long : found;
  return pool[Math.floor(random() * pool.length)]!;
}

function describe(
  expected: ReadonlySet<number>,
  found: readonly number[],
  tokens: TokenBytes,
): string | null {
  const name = (id: number): string => JSON.stringify(Buffer.from(bytesOf(tokens, id)).toString('latin1'));
  const extra = found.filter((id) => !expected.has(id));
  const missing = [...expected].filter((id) => !found.includes(id));
  if (extra.length === 0 && missing.length === 0) return null;
  return `wrongly allowed ${extra.slice(0, 10).map(name)}, wrongly refused ${missing.slice(0, 10).map(name)}`;
}
