import type { Program } from '../program/program.ts';
import type { WorkBudget } from '../work-budget.ts';

/** What a program state can begin by calling rules: everything reachable through calls before any byte is read. */
export interface Prediction {
  /** By byte class: states of called rules after their first byte. */
  readonly byClass: readonly (readonly number[] | undefined)[];
  /** By rule: states of called rules that themselves begin by calling it, after that call. */
  readonly afterCall: ReadonlyMap<number, readonly number[]>;
}

/** Predictions per program state, made when first asked for. */
export class Predictions {
  readonly #program: Program;
  readonly #known: (Prediction | undefined)[] = [];
  #targets = 0;

  constructor(program: Program) {
    this.#program = program;
  }

  /** About the memory of those made. */
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
