import { bytesOf } from '../automaton/token-bytes.ts';
import { BY_NAME, pathsOfToken } from '../automaton/token-path.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import { type Program, refersToTokens } from '../program/program.ts';
import { nextPosition, repetitions, searchOf, type TextPosition } from './distinct-items.ts';
import type { GrammarVocabulary } from './grammar-vocabulary.ts';
import { MaskMaker } from './mask-maker.ts';
import { ACCEPTING, DEAD, StateTable } from './state-table.ts';
import { TableHandle, type TableMemory } from './table-memory.ts';

const MAX_STATES = 30_000;
const MAX_TABLE_BYTES = 64 * 2 ** 20;
const MAX_OPERATION_BYTES = 128 * 2 ** 20;

export interface TableLimits {
  /** A state table that exceeds this or `bytes` is replaced by an empty one before the next operation. */
  readonly states?: number;
  readonly bytes?: number;
  /** An operation fails if it alone fills a table of this size. */
  readonly operationBytes?: number;
}

/** A part of a text: a token, or bytes. */
export type TextInput = number | Uint8Array;

/** Parses texts of a program in tables that all its sequences share, and computes their masks. */
export class GrammarParser {
  readonly #program: Program;
  readonly #vocabulary: GrammarVocabulary;
  readonly #limits: Required<TableLimits>;
  /** Of every table in use: sequences may still work in replaced ones. */
  readonly #masks = new WeakMap<StateTable, MaskMaker>();
  #current: TableHandle;

  constructor(
    program: Program,
    vocabulary: GrammarVocabulary,
    { states = MAX_STATES, bytes = MAX_TABLE_BYTES, operationBytes = MAX_OPERATION_BYTES }: TableLimits,
  ) {
    this.#program = program;
    this.#vocabulary = vocabulary;
    this.#limits = { states, bytes, operationBytes };
    this.#current = this.newTable();
  }

  /** Estimated memory of the shared table. */
  get bytes(): number {
    return this.#current.table?.bytes ?? 0;
  }

  get tables(): TableMemory {
    return this.#vocabulary.tables;
  }

  /** The table of operations that begin. One that is too large, or was dropped, is replaced. */
  currentTable(): TableHandle {
    const { table } = this.#current;
    const isUsable = table !== null && table.size <= this.#limits.states && table.bytes <= this.#limits.bytes;
    if (!isUsable) this.#current = this.newTable();
    return this.#current;
  }

  /**
   * An empty table. The size of the shared one depends on its other users. In a table of its own, the size of
   * an operation depends on the text alone.
   */
  newTable(): TableHandle {
    return new TableHandle(new StateTable(this.#program));
  }

  /** Whether a table has no room for an operation that goes on. */
  isFull({ bytes }: StateTable): boolean {
    return bytes > this.#limits.operationBytes;
  }

  mask(table: StateTable, position: TextPosition, budget: WorkBudget): Uint32Array {
    const mask = this.#masksOf(table).mask(position.state, budget);
    if (this.#program.distinctRules.size === 0) return mask;
    const { walk } = this.#vocabulary.tiersFor(this.#program)[0]!;
    const repeating = repetitions(walk, table, position, budget);
    return mask.map((word, w) => word & ~repeating[w]!);
  }

  #masksOf(table: StateTable): MaskMaker {
    const cached = this.#masks.get(table);
    if (cached !== undefined) return cached;
    const made = new MaskMaker(table, this.#vocabulary);
    this.#masks.set(table, made);
    return made;
  }

  /**
   * Returns the position after a token or bytes.
   * @throws Error if the grammar does not allow them
   */
  advance(table: StateTable, start: TextPosition, input: TextInput, budget: WorkBudget): TextPosition {
    if (typeof input !== 'number') {
      const next = this.#afterBytes(table, start, input, budget);
      if (next === null) throw new Error('The bytes do not match the grammar here');
      return next;
    }
    const reached = this.#pathsOf(input).flatMap((path) => afterBytes(table, start, path, budget) ?? []);
    const state = table.unite(reached.map((next) => next.state));
    if (state === DEAD) throw new Error(`Token ${input} does not match the grammar here`);
    return { ...reached[0]!, state };
  }

  allowsBytes(table: StateTable, start: TextPosition, bytes: Uint8Array, budget: WorkBudget): boolean {
    return this.#afterBytes(table, start, bytes, budget) !== null;
  }

  /** Returns null if no text goes on behind the bytes. */
  #afterBytes(
    table: StateTable,
    start: TextPosition,
    bytes: Uint8Array,
    budget: WorkBudget,
  ): TextPosition | null {
    const next = afterBytes(table, start, bytes, budget);
    return next !== null && searchOf(table, budget)(next) ? next : null;
  }

  /** Whether a reference to a token completes the text. */
  completesWith(table: StateTable, start: TextPosition, token: number, budget: WorkBudget): boolean {
    if (!refersToTokens(this.#program)) return false;
    const references = pathsOfToken(this.#vocabulary.tokens, token).filter(([first]) => first! >= BY_NAME);
    return references.some((path) => {
      const after = afterBytes(table, start, path, budget);
      return after !== null && (table.flags.data[after.state]! & ACCEPTING) !== 0;
    });
  }

  /** A grammar may match a token as text and, if it refers to tokens, by id or name. */
  #pathsOf(token: number): readonly Uint8Array[] {
    const { tokens } = this.#vocabulary;
    if (refersToTokens(this.#program)) return pathsOfToken(tokens, token);
    return tokens.special[token] === 1 || bytesOf(tokens, token).length === 0 ? [] : [bytesOf(tokens, token)];
  }
}

function afterBytes(
  table: StateTable,
  start: TextPosition,
  bytes: Iterable<number>,
  budget: WorkBudget,
): TextPosition | null {
  let position: TextPosition | null = start;
  for (const byte of bytes) {
    position = nextPosition(table, position, byte, budget);
    if (position === null) return null;
  }
  return position;
}
