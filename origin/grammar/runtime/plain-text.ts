import { nullOn } from '@continuo/shared/null-on.ts';
import { PieceTooLarge, type WorkBudget } from '../automaton/work-budget.ts';
import type { TransitionNetwork } from '../program/program.ts';
import { DEAD, type StateTable, UNKNOWN } from './state-table.ts';

/**
 * The automaton of plain text: UTF-8 (Unicode 16, table 3-7) without quotes, backslashes and control
 * characters. Edges are [phase, first byte, last byte, next phase]; a character ends in phase 0, and every
 * phase may end a token.
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

/** More bytes are only counted if there is no bound. */
export const COUNTED_BYTES = 16;
/**
 * Pairs of parser state and phase that are searched at most. A counted string has about four per character.
 */
const MAX_PAIRS = 250;
/**
 * A program state is endless if its search ends before so many bytes and pairs. Names of properties have
 * fewer.
 */
const MAX_PROGRAM_BYTES = 64;
const MAX_PROGRAM_PAIRS = 5000;

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

/** Measures how much plain text a parser state allows, by byte classes instead of tokens. */
export class PlainText {
  readonly #network: TransitionNetwork;
  /** By phase: pairs of byte class and next phase, by class. */
  readonly #steps: readonly (readonly (readonly [number, number])[])[];
  /** Whether a program state's rule matches every plain text; by state, as far as known. */
  readonly #endless = new Map<number, boolean>();

  constructor(network: TransitionNetwork) {
    this.#network = network;
    this.#steps = Array.from({ length: PHASES }, (_, phase) => {
      const steps = new Map<number, readonly [number, number]>();
      for (const [from, first, last, next] of EDGES) {
        if (from !== phase) continue;
        for (let byte = first; byte <= last; byte++) {
          steps.set(network.classOf[byte]! * PHASES + next, [network.classOf[byte]!, next]);
        }
      }
      return [...steps.values()];
    });
  }

  /**
   * Returns a number of bytes up to which every plain text matches from a state, without an end of its
   * ANY_CALLER rule; Infinity if there is no bound, at most COUNTED_BYTES otherwise.
   * @param maxUnits work after which the search ends with what it has found
   */
  freeBytes(table: StateTable, start: number, budget: WorkBudget, maxUnits: number): number {
    const leastLeft = budget.left - maxUnits;
    return freeLength(start * PHASES, COUNTED_BYTES, MAX_PAIRS, (pair) => {
      const state = Math.floor(pair / PHASES);
      const phase = pair % PHASES;
      budget.spend(this.#steps[phase]!.length);
      if (phase === 0 && this.#isEndless(table.items(state), budget)) return [];
      const reached: number[] = [];
      for (const [byteClass, next] of this.#steps[phase]!) {
        const cached = table.rows.data[state * this.#network.classCount + byteClass]!;
        const to = cached === UNKNOWN ? stepOrDead(table, state, byteClass, budget) : cached;
        if (to <= DEAD || budget.left < leastLeft) return null;
        reached.push(to * PHASES + next);
      }
      return reached;
    }).bytes;
  }

  /** Whether the rule of an item matches every plain text. */
  #isEndless(items: Int32Array, budget: WorkBudget): boolean {
    return items.some((state, i) => {
      if (i % 2 === 1 || state >= this.#network.ruleOf.length) return false;
      const cached = this.#endless.get(state);
      if (cached !== undefined) return cached;
      const { bytes, seen } = freeLength(state * PHASES, MAX_PROGRAM_BYTES, MAX_PROGRAM_PAIRS, (pair) =>
        this.#pairsAfter(pair, budget),
      );
      const isEndless = bytes === Number.POSITIVE_INFINITY;
      this.#endless.set(state, isEndless);
      if (isEndless) for (const pair of seen) if (pair % PHASES === 0) this.#endless.set(pair / PHASES, true);
      return isEndless;
    });
  }

  /**
   * The pairs of program state and phase after one byte; null if the state has no edge for a byte of plain
   * text.
   */
  #pairsAfter(pair: number, budget: WorkBudget): number[] | null {
    const { byteOffsets, byteEdges } = this.#network;
    const state = Math.floor(pair / PHASES);
    const end = byteOffsets[state + 1]!;
    const steps = this.#steps[pair % PHASES]!;
    const reached: number[] = [];
    let edge = byteOffsets[state]!;
    budget.spend(steps.length);
    for (const [byteClass, next] of steps) {
      while (edge < end && byteEdges[edge + 1]! < byteClass) edge += 3;
      if (edge >= end || byteEdges[edge]! > byteClass) return null;
      reached.push(byteEdges[edge + 2]! * PHASES + next);
    }
    return reached;
  }
}

/** A step that is too large ends the search and not the text: no token may lead to it. */
const stepOrDead = (table: StateTable, state: number, byteClass: number, budget: WorkBudget): number =>
  nullOn(PieceTooLarge, () => table.step(state, byteClass, budget)) ?? DEAD;

/** Breadth-first search: the number of bytes after which a pair has no next ones, or a limit is reached. */
function freeLength(
  start: number,
  maxBytes: number,
  maxPairs: number,
  after: (pair: number) => readonly number[] | null,
): { readonly bytes: number; readonly seen: ReadonlySet<number> } {
  const seen = new Set([start]);
  let level = [start];
  for (let bytes = 0; level.length > 0; bytes++) {
    if (bytes === maxBytes || seen.size > maxPairs) return { bytes, seen };
    const next: number[] = [];
    for (const pair of level) {
      const reached = after(pair);
      if (reached === null) return { bytes, seen };
      for (const state of reached) {
        if (seen.has(state)) continue;
        seen.add(state);
        next.push(state);
      }
    }
    level = next;
  }
  return { bytes: Number.POSITIVE_INFINITY, seen };
}
