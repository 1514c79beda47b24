/**
 * A compiled grammar, independent of any vocabulary: flat tables, which processes pass on for little. It is a recursive
 * transition network: each rule is an automaton over byte classes and calls of rules; no rule matches the empty text, and
 * every state can be completed.
 */
export interface Program extends TransitionNetwork {
  readonly equivalence: StateEquivalence;
}

export interface TransitionNetwork {
  /** Byte → class; bytes of one class behave alike everywhere. Length 256. */
  readonly classOf: Uint8Array;
  readonly classCount: number;
  /** Start state of each rule. Rule 0 is the root. */
  readonly ruleStart: Int32Array;
  /** Rule of each state. */
  readonly ruleOf: Int32Array;
  /** 1 where the rule's match may end. */
  readonly final: Uint8Array;
  /** byteOffsets[q] … byteOffsets[q + 1] delimit state q's entries in `byteEdges`. */
  readonly byteOffsets: Int32Array;
  /** Triples first class, last class, target; sorted by first class. */
  readonly byteEdges: Int32Array;
  /** callOffsets[q] … callOffsets[q + 1] delimit state q's entries in `callEdges`. */
  readonly callOffsets: Int32Array;
  /** Pairs rule, target. */
  readonly callEdges: Int32Array;
  /** The empty text is a match. */
  readonly matchesEmpty: boolean;
}

/**
 * How long texts must be to tell program states apart: states from which the same short texts can be read, with the
 * rule's end after the same ones, allow the same short tokens. Long counted repetitions are chains of such states.
 */
export interface StateEquivalence {
  /** All states, those that are alike next to each other. */
  readonly order: Int32Array;
  /** Where a state stands in `order`. */
  readonly position: Int32Array;
  /**
   * distinguishedAt[i]: texts shorter than so many bytes do not tell order[i − 1] and order[i] apart, so for any two states the
   * minimum between them counts. 0 where they are of different rules, or only one of them is final; NEVER_DISTINGUISHED where no
   * length was found that does.
   */
  readonly distinguishedAt: Int32Array;
}

/** Memory of the tables. */
export function programBytes({ equivalence, ...network }: Program): number {
  const tables = [...Object.values(network), ...Object.values(equivalence)].filter(ArrayBuffer.isView);
  return tables.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
