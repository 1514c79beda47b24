import { bytesOf } from '../../tokenizer/token-bytes.ts';
import type { CompiledGrammar, Constraint } from '../constraint.ts';
import { bytesOfProgram, type Program } from '../program/program.ts';
import type { WorkBudget } from '../work-budget.ts';
import type { GrammarVocabulary } from './grammar-vocabulary.ts';
import { MaskMaker } from './mask-maker.ts';
import { SequenceConstraint } from './sequence-constraint.ts';
import { DEAD, StateTable } from './state-table.ts';
import { transferState } from './transfer-state.ts';

const MAX_STATES = 30_000;
const MAX_TABLE_BYTES = 64 * 2 ** 20;

/** A table of parser states beyond either is given up for a fresh one. */
export interface TableLimits {
  readonly states?: number;
  readonly bytes?: number;
}

/** A position in the text: a parser state and the table it belongs to. */
export interface Position {
  readonly table: StateTable;
  readonly state: number;
}

/** A program together with a vocabulary: parser states and masks, shared by all sequences of the grammar. */
export class GrammarRuntime implements CompiledGrammar {
  readonly vocabulary: GrammarVocabulary;
  readonly #program: Program;
  readonly #programBytes: number;
  readonly #limits: Required<TableLimits>;
  #table: StateTable;
  #masks: MaskMaker;

  constructor(
    program: Program,
    vocabulary: GrammarVocabulary,
    { states = MAX_STATES, bytes = MAX_TABLE_BYTES }: TableLimits = {},
  ) {
    this.vocabulary = vocabulary;
    this.#program = program;
    this.#programBytes = bytesOfProgram(program);
    this.#limits = { states, bytes };
    this.#table = new StateTable(program);
    this.#masks = new MaskMaker(this.#table, vocabulary);
  }

  /** About the memory of the program and its parser states; masks are counted by the vocabulary's cache. */
  get bytes(): number {
    return this.#programBytes + this.#table.bytes;
  }

  start(): Constraint {
    return new SequenceConstraint(this, { table: this.#table, state: this.#table.initial });
  }

  /** The same position in the current table. Call it before each operation: memory is bounded by changing tables. */
  current(position: Position, budget: WorkBudget): Position {
    if (this.#table.size > this.#limits.states || this.#table.bytes > this.#limits.bytes) {
      this.#table = new StateTable(this.#program);
      this.#masks = new MaskMaker(this.#table, this.vocabulary);
    }
    if (position.table === this.#table) return position;
    return { table: this.#table, state: transferState(position.table, position.state, this.#table, budget) };
  }

  /** Expects a current position. */
  mask(position: Position, budget: WorkBudget): Uint32Array {
    return this.#masks.mask(position.state, budget);
  }

  /** The position after a token's bytes. Expects a current position; throws when the token does not match. */
  advance(position: Position, token: number, budget: WorkBudget): Position {
    const { table } = position;
    let state = position.state;
    const bytes = this.vocabulary.tokens.special[token] === 1 ? [] : bytesOf(this.vocabulary.tokens, token);
    if (bytes.length === 0) throw new Error(`Token ${token} has no text and cannot match a grammar`);
    for (const byte of bytes) {
      state = table.next(state, byte, budget);
      if (state === DEAD) throw new Error(`Token ${token} does not match the grammar here`);
    }
    return { table, state };
  }
}
