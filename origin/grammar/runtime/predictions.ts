import type { Program } from '../program/program.ts';
import type { WorkBudget } from '../work-budget.ts';

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
  readonly #known: (Prediction | undefined)[] = [];
  #targets = 0;

  constructor(program: Program) {
    this.#program = program;
  }

  /** Estimated memory in bytes. */
  get bytes(): number {
    return 16 * this.#targets;
  }

  of(state: number, budget: WorkBudget): Prediction {
    return (this.#known[state] ??= this.#make(state, budget));
  }

  #make(state: number, budget: WorkBudget): Prediction {
    const { ruleStart, byteOffsets, byteEdges, callOffsets, callEdges } = this.#program;
    const byClass: number[][] = [];
    const afterCall = new Map<number, number[]>();
    const rules = new Set<number>();
    for (let i = callOffsets[state]!; i < callOffsets[state + 1]!; i += 2) rules.add(callEdges[i]!);
    for (const rule of rules) {
      const start = ruleStart[rule]!;
      for (let i = callOffsets[start]!; i < callOffsets[start + 1]!; i += 2) {
        rules.add(callEdges[i]!);
        this.#targets++;
        const targets = afterCall.get(callEdges[i]!);
        if (targets) targets.push(callEdges[i + 1]!);
        else afterCall.set(callEdges[i]!, [callEdges[i + 1]!]);
      }
      for (let i = byteOffsets[start]!; i < byteOffsets[start + 1]!; i += 3) {
        budget.spend(2 + byteEdges[i + 1]! - byteEdges[i]!);
        this.#targets += 1 + byteEdges[i + 1]! - byteEdges[i]!;
        for (let c = byteEdges[i]!; c <= byteEdges[i + 1]!; c++) {
          const targets = byClass[c];
          if (targets) targets.push(byteEdges[i + 2]!);
          else byClass[c] = [byteEdges[i + 2]!];
        }
      }
    }
    budget.spend(20 + 10 * rules.size);
    return { byClass, afterCall };
  }
}
