import { BY_ID, BY_NAME } from '../automaton/token-path.ts';
import type { OrderedRules } from '../rules/expression.ts';

/**
 * A compiled grammar as flat tables, cheap to send between processes. It is a recursive transition network:
 * each rule is an automaton over byte classes and calls of rules. No rule matches the empty text, and every
 * state can reach a final state.
 */
export interface Program extends TransitionNetwork {
  /**
   * By rule: those whose states the runtime creates. In the tables, each has only a start state without
   * edges.
   */
  readonly anyOrders: ReadonlyMap<number, OrderedRules>;
  /** Rules of JSON arrays whose items must differ, which the tables do not ensure. */
  readonly distinctRules: ReadonlySet<number>;
  readonly equivalence: StateEquivalence;
  /** Keywords of the schemas that are not enforced because no specification knows them. */
  readonly ignoredKeywords: readonly string[];
  /** Names of the tokens that the grammar refers to. */
  readonly tokenNames: readonly string[];
}

export interface TransitionNetwork {
  /** Class of each byte. Bytes of one class have the same edges everywhere. Length 256. */
  readonly classOf: Uint8Array;
  readonly classCount: number;
  /** Start state of each rule. Rule 0 is the root. */
  readonly ruleStart: Int32Array;
  /** Rule of each state. */
  readonly ruleOf: Int32Array;
  /** Per state: 1 if the rule may end there. */
  readonly final: Uint8Array;
  /** State q's entries in `byteEdges` are byteOffsets[q] … byteOffsets[q + 1] − 1. */
  readonly byteOffsets: Int32Array;
  /** Triples of first class, last class and target; sorted by first class. */
  readonly byteEdges: Int32Array;
  /** State q's entries in `callEdges` are callOffsets[q] … callOffsets[q + 1] − 1. */
  readonly callOffsets: Int32Array;
  /** Pairs of rule and target. */
  readonly callEdges: Int32Array;
  /** Whether the empty text matches. */
  readonly matchesEmpty: boolean;
}

/**
 * The length of the shortest texts that distinguish program states. States that no text shorter than n bytes
 * distinguishes allow the same tokens of fewer than n bytes. Chains of such states come from counted
 * repetitions.
 */
export interface StateEquivalence {
  /** All states, equivalent ones next to each other. */
  readonly order: Int32Array;
  /** Index of each state in `order`. */
  readonly position: Int32Array;
  /**
   * distinguishedAt[i]: length in bytes of the shortest text that distinguishes order[i − 1] and order[i].
   * For two states, the minimum between them counts. 0 if they differ in rule or finality;
   * NEVER_DISTINGUISHED if no such length was found.
   */
  readonly distinguishedAt: Int32Array;
}

/**
 * Whether the grammar refers to tokens. All references contain the byte BY_ID; no text contains it or bytes
 * near it.
 */
export function refersToTokens({ classOf }: TransitionNetwork): boolean {
  return classOf[BY_ID] !== classOf[BY_NAME - 1];
}

/** Memory of the tables in bytes. */
export function programBytes({ equivalence, ...network }: Program): number {
  const tables = [...Object.values(network), ...Object.values(equivalence)].filter(ArrayBuffer.isView);
  return tables.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
