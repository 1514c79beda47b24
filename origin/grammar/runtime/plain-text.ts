import type { TransitionNetwork } from '../program/program.ts';
import type { WorkBudget } from '../work-budget.ts';
import { DEAD, type StateTable, UNKNOWN } from './state-table.ts';

/**
 * The automaton of plain text: UTF-8 (Unicode 16, table 3-7) without quotes, backslashes and control characters. Edges are
 * [phase, first byte, last byte, next phase]; a character ends in phase 0, and every phase may end a token.
 */
const EDGES: readonly (readonly [number, number, number, number])[] = [
  [0, 0x20, 0x21, 0],
  [0, 0x23, 0x5b, 0],
  [0, 0x5d, 0x7e, 0],
  [0, 0xc2, 0xdf, 1],
  [0, 0xe0, 0xe0, 4],
  [0, 0xe1, 0xec, 2],
  [0, 0xed, 0xed, 5],
  [0, 0xee, 0xef, 2],
  [0, 0xf0, 0xf0, 6],
  [0, 0xf1, 0xf3, 3],
  [0, 0xf4, 0xf4, 7],
  [1, 0x80, 0xbf, 0],
  [2, 0x80, 0xbf, 1],
  [3, 0x80, 0xbf, 2],
  [4, 0xa0, 0xbf, 1],
  [5, 0x80, 0x9f, 1],
  [6, 0x90, 0xbf, 2],
  [7, 0x80, 0x8f, 2],
];
const PHASES = 8;

/** Pairs of parser state and phase that are searched at most. A counted string has about four per character. */
const MAX_PAIRS = 400;

/** Returns whether bytes, one code unit each, are the beginning of a plain text. */
export function isPlain(bytes: string): boolean {
  let phase = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes.charCodeAt(i);
    const edge = EDGES.find(([from, first, last]) => from === phase && first <= byte && byte <= last);
    if (edge === undefined) return false;
    phase = edge[3];
  }
  return true;
}

/** Measures how much plain text a parser state allows, by a search over byte classes instead of a walk over tokens. */
export class PlainText {
  /** By phase: pairs of byte class and next phase. */
  readonly #steps: readonly (readonly (readonly [number, number])[])[];

  constructor({ classOf }: TransitionNetwork) {
    this.#steps = Array.from({ length: PHASES }, (_, phase) => {
      const steps = new Map<number, readonly [number, number]>();
      for (const [from, first, last, next] of EDGES) {
        if (from !== phase) continue;
        for (let byte = first; byte <= last; byte++) {
          steps.set(classOf[byte]! * PHASES + next, [classOf[byte]!, next]);
        }
      }
      return [...steps.values()];
    });
  }

  /**
   * Returns a number of bytes up to which every plain text matches from a state, without an end of its ANY_CALLER rule;
   * Infinity if there is no bound.
   * @param maxUnits work after which the search ends with what it has found
   */
  freeBytes(table: StateTable, start: number, budget: WorkBudget, maxUnits: number): number {
    const { classCount } = table.program;
    const leastLeft = budget.left - maxUnits;
    const seen = new Set([start * PHASES]);
    let level = [...seen];
    for (let bytes = 0; ; bytes++) {
      if (level.length === 0) return Number.POSITIVE_INFINITY;
      if (seen.size > MAX_PAIRS) return bytes;
      const next: number[] = [];
      for (const pair of level) {
        const state = Math.floor(pair / PHASES);
        for (const [byteClass, phase] of this.#steps[pair % PHASES]!) {
          const known = table.rows.data[state * classCount + byteClass]!;
          const to = known === UNKNOWN ? table.step(state, byteClass, budget) : known;
          if (to <= DEAD || budget.left < leastLeft) return bytes;
          const reached = to * PHASES + phase;
          if (seen.has(reached)) continue;
          seen.add(reached);
          next.push(reached);
        }
        budget.spend(this.#steps[pair % PHASES]!.length);
      }
      level = next;
    }
  }
}
