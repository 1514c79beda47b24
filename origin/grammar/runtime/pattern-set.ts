import type { Program } from '../program/program.ts';

/** Positions in patterns that the text may go on from: program states with their start, earliest first. */
export interface Threads {
  readonly states: readonly number[];
  readonly starts: readonly number[];
}

const NO_STATES: readonly number[] = [];
export const NO_THREADS: Threads = { states: NO_STATES, starts: NO_STATES };

/**
 * Regular expressions to search for, without their vocabulary. Every state has one thread at most, the one
 * that began earliest (Pike's simulation, with the start as the priority). So a byte costs at most as much as
 * the automata have states.
 */
export class PatternSet {
  readonly #program: Program;
  /** Per byte class: states after the first byte of a match. */
  readonly #first: readonly (readonly number[])[];
  /** Per state: the round in which it last got a thread. */
  readonly #seen: Int32Array;
  #round = 0;

  /** @param program rule i is pattern i; no rule calls another */
  constructor(program: Program) {
    this.#program = program;
    this.#seen = new Int32Array(program.final.length);
    const starts = { states: [...program.ruleStart], starts: [...program.ruleStart] };
    this.#first = Array.from(
      { length: program.classCount },
      (_, byteClass) => this.#step(starts, byteClass, NO_STATES, -1).states,
    );
  }

  /** Memory of the tables in bytes, roughly. */
  get bytes(): number {
    return 64 * this.#seen.length + 4 * this.#program.byteEdges.length;
  }

  /**
   * Returns the threads after one more byte.
   * @param at position of the byte's character if the byte is its first, where matches may begin; −1
   *   otherwise
   */
  next(threads: Threads, byte: number, at: number): Threads {
    const byteClass = this.#program.classOf[byte]!;
    const first = at < 0 ? NO_STATES : this.#first[byteClass]!;
    if (threads.states.length === 0 && first.length === 0) return NO_THREADS;
    return this.#step(threads, byteClass, first, at);
  }

  /** @param first states of new threads, which begin at `at` */
  #step({ states, starts }: Threads, byteClass: number, first: readonly number[], at: number): Threads {
    const next = { states: [] as number[], starts: [] as number[] };
    const round = ++this.#round;
    const add = (state: number, start: number): void => {
      if (this.#seen[state] === round) return;
      this.#seen[state] = round;
      next.states.push(state);
      next.starts.push(start);
    };
    const { byteOffsets, byteEdges } = this.#program;
    for (let thread = 0; thread < states.length; thread++) {
      const state = states[thread]!;
      for (let edge = byteOffsets[state]!; edge < byteOffsets[state + 1]!; edge += 3) {
        if (byteEdges[edge]! > byteClass) break;
        if (byteClass <= byteEdges[edge + 1]!) add(byteEdges[edge + 2]!, starts[thread]!);
      }
    }
    for (const state of first) add(state, at);
    return next;
  }

  /** Returns the pattern that matches up to here and began earliest. */
  match({ states, starts }: Threads): { readonly start: number; readonly pattern: number } | null {
    const { final, ruleOf } = this.#program;
    const thread = states.findIndex((state) => final[state] === 1);
    if (thread < 0) return null;
    return { start: starts[thread]!, pattern: ruleOf[states[thread]!]! };
  }
}
