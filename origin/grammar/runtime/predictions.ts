import type { WorkBudget } from '../automaton/work-budget.ts';
import type { Program } from '../program/program.ts';
import type { ProgramStates } from './program-states.ts';
import { UNITS_PER_PARSER_STEP } from './step-budget.ts';

/** Earley prediction for a program state: everything reachable by calls before a byte is read. */
export interface Prediction {
  /** By byte class: states of called rules after their first byte. */
  readonly byClass: readonly (readonly number[] | undefined)[];
  /** By rule: states of called rules after a leading call of that rule. */
  readonly afterCall: ReadonlyMap<number, readonly number[]>;
}

/** Predictions per program state, computed on first use. */
export class Predictions {
  readonly #program: Program;
  readonly #states: ProgramStates;
  readonly #predictions: (Prediction | undefined)[] = [];
  #targets = 0;

  constructor(program: Program, states: ProgramStates) {
    this.#program = program;
    this.#states = states;
  }

  /** Estimated memory in bytes. */
  get bytes(): number {
    return 16 * this.#targets;
  }

  of(state: number, budget: WorkBudget): Prediction {
    return (this.#predictions[state] ??= this.#make(state, budget));
  }

  #make(state: number, budget: WorkBudget): Prediction {
    const { ruleStart, byteOffsets, byteEdges } = this.#program;
    const piece = budget.piece(UNITS_PER_PARSER_STEP);
    const byClass: number[][] = [];
    const afterCall = new Map<number, number[]>();
    const rules = new Set(this.#states.called(state));
    for (const rule of rules) {
      const start = ruleStart[rule]!;
      for (const called of new Set(this.#states.called(start))) {
        rules.add(called);
        const targets = this.#states.afterCall(start, called);
        this.#targets += targets.length;
        afterCall.set(called, [...(afterCall.get(called) ?? []), ...targets]);
      }
      for (let i = byteOffsets[start]!; i < byteOffsets[start + 1]!; i += 3) {
        piece.spend(2 + byteEdges[i + 1]! - byteEdges[i]!);
        this.#targets += 1 + byteEdges[i + 1]! - byteEdges[i]!;
        for (let c = byteEdges[i]!; c <= byteEdges[i + 1]!; c++) {
          const targets = byClass[c];
          if (targets) targets.push(byteEdges[i + 2]!);
          else byClass[c] = [byteEdges[i + 2]!];
        }
      }
    }
    piece.spend(20 + 10 * rules.size);
    return { byClass, afterCall };
  }
}
