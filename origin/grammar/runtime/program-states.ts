import type { Program } from '../program/program.ts';
import { AnyOrderAutomaton, type MembersWritten } from './members-written.ts';

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
