import { ApiError } from '@continuo/shared/errors.ts';
import { bytesOf, type TokenBytes } from '../automaton/token-bytes.ts';
import { BY_NAME, isNamed, pathsOfToken } from '../automaton/token-path.ts';
import { StepBudget, type WorkBudget } from '../automaton/work-budget.ts';
import { type Program, programBytes, refersToTokens } from '../program/program.ts';
import type { CompiledGrammar, Constraint } from './constraint.ts';
import { Continuations } from './continuations.ts';
import { nextPosition, startOf, type TextPosition } from './distinct-arrays.ts';
import type { GrammarVocabulary } from './grammar-vocabulary.ts';
import { MaskMaker } from './mask-maker.ts';
import { ACCEPTING, DEAD, StateTable } from './state-table.ts';

const MAX_STATES = 30_000;
const MAX_TABLE_BYTES = 64 * 2 ** 20;

/** A state table that exceeds either limit is replaced by an empty one. */
export interface TableLimits {
  readonly states?: number;
  readonly bytes?: number;
}

/** A place in a text and the table that its parser state belongs to. */
export interface ParserPosition extends TextPosition {
  readonly table: StateTable;
}

/** A program for one vocabulary. All sequences of the grammar share its parser states and masks. */
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
    requireTokens(program, vocabulary.tokens);
    this.#programBytes = programBytes(program);
    this.#limits = { states, bytes };
    this.#table = new StateTable(program);
    this.#masks = new MaskMaker(this.#table, vocabulary);
  }

  get ignoredKeywords(): readonly string[] {
    return this.#program.ignoredKeywords;
  }

  /** Estimated memory of the program and its parser states in bytes. Masks are counted by the mask cache. */
  get bytes(): number {
    return this.#programBytes + this.#table.bytes;
  }

  start(onWork: (units: number) => void = () => {}): Constraint {
    return new SequenceConstraint(this, { table: this.#table, ...startOf(this.#table) }, onWork);
  }

  /**
   * Moves a position to the current table, and replaces a table that is too large. Call it before each
   * operation.
   */
  inCurrentTable(position: ParserPosition, budget: WorkBudget): ParserPosition {
    if (this.#table.size > this.#limits.states || this.#table.bytes > this.#limits.bytes) {
      this.#table = new StateTable(this.#program);
      this.#masks = new MaskMaker(this.#table, this.vocabulary);
    }
    if (position.table === this.#table) return position;
    const state = this.#table.importState(position.table, position.state, budget);
    return { ...position, table: this.#table, state };
  }

  /** Expects a position of the current table. */
  mask(position: ParserPosition, budget: WorkBudget): Uint32Array {
    const mask = this.#masks.mask(position.state, budget);
    if (this.#program.distinctRules.size === 0) return mask;
    return this.vocabulary.distinctItemsFilter(this.#program).filter(mask, this.#table, position, budget);
  }

  /**
   * Returns the position after a token. Expects a position of the current table.
   * @throws Error if the grammar does not allow the token
   */
  advance(position: ParserPosition, token: number, budget: WorkBudget): ParserPosition {
    const { table } = position;
    const reached = this.#pathsOf(token).flatMap((path) => afterBytes(position, path, budget) ?? []);
    const state = table.unite(reached.map((next) => next.state));
    if (state === DEAD) throw new Error(`Token ${token} does not match the grammar here`);
    return { ...reached[0]!, state };
  }

  /** Returns null if the grammar does not allow the bytes. Expects a position of the current table. */
  advanceBytes(position: ParserPosition, bytes: Iterable<number>, budget: WorkBudget): ParserPosition | null {
    const next = afterBytes(position, bytes, budget);
    return next !== null && new Continuations(next.table, budget).exists(next) ? next : null;
  }

  /** Whether a reference to a token completes the text. Expects a position of the current table. */
  completesWith(position: ParserPosition, token: number, budget: WorkBudget): boolean {
    if (!refersToTokens(this.#program)) return false;
    const references = pathsOfToken(this.vocabulary.tokens, token).filter(([first]) => first! >= BY_NAME);
    return references.some((path) => {
      const after = afterBytes(position, path, budget);
      return after !== null && isAccepting(after);
    });
  }

  /** A grammar may match a token as text and, if it refers to tokens, by id or name. */
  #pathsOf(token: number): readonly Uint8Array[] {
    const { tokens } = this.vocabulary;
    if (refersToTokens(this.#program)) return pathsOfToken(tokens, token);
    return tokens.special[token] === 1 || bytesOf(tokens, token).length === 0 ? [] : [bytesOf(tokens, token)];
  }
}

const isAccepting = ({ table, state }: ParserPosition): boolean =>
  (table.flags.data[state]! & ACCEPTING) !== 0;

function afterBytes(
  { table, ...start }: ParserPosition,
  bytes: Iterable<number>,
  budget: WorkBudget,
): ParserPosition | null {
  let position: TextPosition | null = start;
  for (const byte of bytes) {
    position = nextPosition(table, position, byte, budget);
    if (position === null) return null;
  }
  return { table, ...position };
}

/** The constraint of one sequence: its position in the grammar. */
class SequenceConstraint implements Constraint {
  readonly #grammar: GrammarRuntime;
  readonly #budget: StepBudget;
  #position: ParserPosition;

  constructor(grammar: GrammarRuntime, start: ParserPosition, onWork: (units: number) => void) {
    this.#grammar = grammar;
    this.#budget = new StepBudget(grammar.vocabulary.tokens.vocabularySize, onWork);
    this.#position = start;
  }

  get accepting(): boolean {
    return isAccepting(this.#position);
  }

  completesWith(token: number): boolean {
    return this.#budget.run((budget) => {
      this.#position = this.#grammar.inCurrentTable(this.#position, budget);
      return this.#grammar.completesWith(this.#position, token, budget);
    });
  }

  mask(): Uint32Array {
    return this.#budget.run((budget) => {
      this.#position = this.#grammar.inCurrentTable(this.#position, budget);
      return this.#grammar.mask(this.#position, budget);
    });
  }

  allowsBytes(bytes: Uint8Array): boolean {
    return this.#afterBytes(bytes) !== null;
  }

  acceptBytes(bytes: Uint8Array): void {
    const next = this.#afterBytes(bytes);
    if (next === null) throw new Error('The bytes do not match the grammar here');
    this.#position = next;
  }

  save(): () => void {
    const position = this.#position;
    return () => {
      this.#position = position;
    };
  }

  #afterBytes(bytes: Uint8Array): ParserPosition | null {
    return this.#budget.run((budget) =>
      this.#grammar.advanceBytes(this.#grammar.inCurrentTable(this.#position, budget), bytes, budget),
    );
  }

  accept(token: number): void {
    this.#position = this.#budget.run((budget) =>
      this.#grammar.advance(this.#grammar.inCurrentTable(this.#position, budget), token, budget),
    );
  }
}

/** @throws ApiError if the grammar refers to a token by a name that no token of the model has */
function requireTokens({ tokenNames }: Program, tokens: TokenBytes): void {
  const missing = new Set(tokenNames);
  if (missing.size === 0) return;
  const decoder = new TextDecoder();
  for (let id = 0; id < tokens.vocabularySize; id++) {
    if (isNamed(tokens, id)) missing.delete(decoder.decode(bytesOf(tokens, id)));
  }
  const [name] = missing;
  if (name === undefined) return;
  throw new ApiError('invalid_grammar', `The model has no token named ${name}`, { param: 'grammar' });
}
