import type { WorkBudget } from '../automaton/work-budget.ts';
import type { Program } from '../program/program.ts';
import type { OrderedRules } from '../rules/expression.ts';
import { UNITS_PER_PARSER_STEP } from './constraint.ts';

interface CreatedState {
  readonly rule: number;
  readonly written: MembersWritten;
}

/**
 * The states of a program: those of its tables, and those of members in any order. There is one of the latter
 * per set of members written, so each gets its number when a text reaches it.
 */
export class ProgramStates {
  readonly #program: Program;
  readonly #automata: ReadonlyMap<number, AnyOrderAutomaton>;
  readonly #created = new Map<number, CreatedState>();
  readonly #numbers = new Map<string, number>();

  constructor(program: Program) {
    this.#program = program;
    this.#automata = new Map(
      [...program.anyOrders].map(([rule, rules]) => [rule, new AnyOrderAutomaton(rules)]),
    );
    for (const [rule, { start }] of this.#automata)
      this.#created.set(program.ruleStart[rule]!, { rule, written: start });
  }

  /** Estimated memory in bytes. */
  get bytes(): number {
    return 500 * this.#created.size;
  }

  /** Whether the program's tables have a state. */
  isTabled(state: number): boolean {
    return state < this.#program.ruleOf.length;
  }

  ruleOf(state: number): number {
    return this.#program.ruleOf[state] ?? this.#created.get(state)!.rule;
  }

  /** Whether the state's rule may end there. */
  isFinal(state: number): boolean {
    if (this.isTabled(state)) return this.#program.final[state] === 1;
    const { rule, written } = this.#created.get(state)!;
    return this.#automata.get(rule)!.mayEnd(written);
  }

  hasEdges(state: number): boolean {
    if (this.#created.has(state)) return this.called(state).length > 0;
    const { byteOffsets, callOffsets } = this.#program;
    return byteOffsets[state] !== byteOffsets[state + 1] || callOffsets[state] !== callOffsets[state + 1];
  }

  /** The rules that a state calls. */
  called(state: number): readonly number[] {
    const created = this.#created.get(state);
    if (created !== undefined) return this.#automata.get(created.rule)!.called(created.written);
    const { callOffsets, callEdges } = this.#program;
    const rules: number[] = [];
    for (let i = callOffsets[state]!; i < callOffsets[state + 1]!; i += 2) rules.push(callEdges[i]!);
    return rules;
  }

  /** The states that follow a call of a rule in a state. */
  afterCall(state: number, rule: number): readonly number[] {
    const created = this.#created.get(state);
    if (created !== undefined) {
      const written = this.#automata.get(created.rule)!.after(created.written, rule);
      return written === null ? [] : [this.#numberOf({ rule: created.rule, written })];
    }
    const { callOffsets, callEdges } = this.#program;
    const targets: number[] = [];
    for (let i = callOffsets[state]!; i < callOffsets[state + 1]!; i += 2)
      if (callEdges[i] === rule) targets.push(callEdges[i + 1]!);
    return targets;
  }

  /** Returns the number of another table's state. */
  importState(from: ProgramStates, state: number): number {
    return this.isTabled(state) ? state : this.#numberOf(from.#created.get(state)!);
  }

  #numberOf(created: CreatedState): number {
    const { members, others, expectsMember } = created.written;
    const key = `${created.rule} ${members} ${others} ${expectsMember}`;
    let state = this.#numbers.get(key);
    if (state === undefined) {
      state = this.#program.ruleOf.length + this.#created.size;
      this.#numbers.set(key, state);
      this.#created.set(state, created);
    }
    return state;
  }
}

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

/** What has been written of members in any order. */
interface MembersWritten {
  /** Bit i: whether member i has been written. */
  readonly members: bigint;
  /** Number of these, and of required ones that are missing. */
  readonly count: number;
  readonly missing: number;
  /** Number of `other` members; without a maximum, only as far as the minimum demands. */
  readonly others: number;
  /** Whether a member comes next, and not a separator or the end. */
  readonly expectsMember: boolean;
}

/** The automaton of members in any order. A state is what has been written. */
class AnyOrderAutomaton {
  readonly start: MembersWritten;
  readonly #rules: OrderedRules;
  readonly #indexOf: ReadonlyMap<number, number>;

  constructor(rules: OrderedRules) {
    this.#rules = rules;
    this.#indexOf = new Map(rules.members.map(({ rule }, index) => [rule, index]));
    const missing = rules.members.filter(({ required }) => required).length;
    this.start = { members: 0n, count: 0, missing, others: 0, expectsMember: true };
  }

  mayEnd({ count, missing, others, expectsMember }: MembersWritten): boolean {
    return !expectsMember && missing === 0 && count + others >= this.#rules.min;
  }

  /** The rules that a state calls. */
  called(state: MembersWritten): readonly number[] {
    const { additional, separator } = this.#rules;
    const members = this.#rules.members.filter((_, index) => this.#mayFollow(state, index));
    const rules = members.map(({ rule }) => rule);
    if (additional !== null && this.#hasRoom(state, 1)) rules.push(additional);
    if (state.expectsMember) return rules;
    return rules.length === 0 ? [] : [separator];
  }

  /** The state after a call of a rule; null if the state does not call it. */
  after(state: MembersWritten, rule: number): MembersWritten | null {
    const { members, additional, separator, min, max } = this.#rules;
    if (rule === separator) return state.expectsMember ? null : { ...state, expectsMember: true };
    const written = { ...state, expectsMember: false };
    if (rule === additional) {
      const counted = Number.isFinite(max) ? max : Math.max(min, 1);
      return this.#hasRoom(state, 1) ? { ...written, others: Math.min(state.others + 1, counted) } : null;
    }
    const index = this.#indexOf.get(rule);
    if (index === undefined || !this.#mayFollow(state, index)) return null;
    const missing = state.missing - (members[index]!.required ? 1 : 0);
    return { ...written, members: state.members | (1n << BigInt(index)), count: state.count + 1, missing };
  }

  #mayFollow(state: MembersWritten, index: number): boolean {
    const isWritten = ((state.members >> BigInt(index)) & 1n) === 1n;
    return !isWritten && this.#hasRoom(state, this.#rules.members[index]!.required ? 0 : 1);
  }

  /** Whether the maximum allows this many members in addition to the required ones. */
  #hasRoom({ count, missing, others }: MembersWritten, more: number): boolean {
    return count + others + missing + more <= this.#rules.max;
  }
}
