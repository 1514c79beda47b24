import type { OrderedRules } from '../rules/expression.ts';

/** What has been written of members in any order. */
export interface MembersWritten {
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
export class AnyOrderAutomaton {
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
