import { ApiError } from '@continuo/shared/errors.ts';
import { nullOn } from '@continuo/shared/null-on.ts';
import { bytesOf, type TokenBytes } from '../automaton/token-bytes.ts';
import { isNamed } from '../automaton/token-path.ts';
import { BudgetExceeded, PieceTooLarge, type WorkBudget } from '../automaton/work-budget.ts';
import { type Program, programBytes } from '../program/program.ts';
import { type CompiledGrammar, type Constraint, StepBudget, UnfinishedWork } from './constraint.ts';
import { OUTSIDE, type TextPosition } from './distinct-items.ts';
import { GrammarParser, type TableLimits, type TextInput } from './grammar-parser.ts';
import type { GrammarVocabulary } from './grammar-vocabulary.ts';
import { StateImport } from './state-import.ts';
import { ACCEPTING, type StateTable } from './state-table.ts';
import type { TableHandle, TableUser } from './table-memory.ts';

export interface GrammarLimits extends TableLimits {
  /** Work of one call; absent = the default of StepBudget. */
  readonly unitsPerCall?: number | undefined;
}

/** A program for one vocabulary. All sequences of the grammar share its parser states and masks. */
export class GrammarRuntime implements CompiledGrammar {
  readonly vocabulary: GrammarVocabulary;
  readonly #program: Program;
  readonly #programBytes: number;
  readonly #parser: GrammarParser;
  readonly #unitsPerCall: number | undefined;

  constructor(program: Program, vocabulary: GrammarVocabulary, limits: GrammarLimits = {}) {
    this.vocabulary = vocabulary;
    this.#program = program;
    requireTokens(program, vocabulary.tokens);
    this.#programBytes = programBytes(program);
    this.#parser = new GrammarParser(program, vocabulary, limits);
    this.#unitsPerCall = limits.unitsPerCall;
  }

  get ignoredKeywords(): readonly string[] {
    return this.#program.ignoredKeywords;
  }

  /** Estimated memory of the program and its parser states in bytes. Masks are counted by the mask cache. */
  get bytes(): number {
    return this.#programBytes + this.#parser.bytes;
  }

  start(onWork: (units: number) => void = () => {}): Constraint {
    const { vocabularySize } = this.vocabulary.tokens;
    return new SequenceConstraint(this.#parser, new StepBudget(vocabularySize, onWork, this.#unitsPerCall));
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

/** A place in the text of a sequence, and the table that its parser state belongs to. */
interface Place {
  readonly handle: TableHandle;
  readonly position: TextPosition;
  readonly accepting: boolean;
  /** Inputs of the text before the place. */
  readonly inputs: number;
}

type Operation<T> = (table: StateTable, position: TextPosition, budget: WorkBudget) => T;

function placeAt(handle: TableHandle, position: TextPosition, inputs: number): Place {
  const accepting = (handle.table!.flags.data[position.state]! & ACCEPTING) !== 0;
  return { handle, position, accepting, inputs };
}

function startPlace(parser: GrammarParser): Place {
  const handle = parser.currentTable();
  return placeAt(handle, { state: handle.table!.initial, level: OUTSIDE }, 0);
}

/** The constraint of one sequence: its text so far, and its place in the grammar. */
class SequenceConstraint implements Constraint, TableUser {
  readonly ref: WeakRef<TableUser> = new WeakRef(this);
  readonly #parser: GrammarParser;
  readonly #budget: StepBudget;
  /** The text so far. Its end may still have to be read; all of it is read again if its table was dropped. */
  readonly #inputs: TextInput[] = [];
  #place: Place;
  /**
   * Whose table has the work of an operation that goes on. 'next' = it begins again in one of its own; null =
   * no operation goes on.
   */
  #workIn: 'shared' | 'next' | 'own' | null = null;
  /** The place's way to another table. */
  #move: StateImport | null = null;

  constructor(parser: GrammarParser, budget: StepBudget) {
    this.#parser = parser;
    this.#budget = budget;
    this.#place = startPlace(parser);
  }

  get accepting(): boolean {
    return this.#place.accepting;
  }

  get tables(): readonly TableHandle[] {
    return this.#move === null ? [this.#place.handle] : [this.#place.handle, this.#move.to];
  }

  completesWith(token: number): boolean {
    return this.#afterInputs((table, position, budget) =>
      this.#parser.completesWith(table, position, token, budget),
    );
  }

  mask(): Uint32Array {
    return this.#afterInputs((table, position, budget) => this.#parser.mask(table, position, budget));
  }

  allowsBytes(bytes: Uint8Array): boolean {
    return this.#afterInputs((table, position, budget) =>
      this.#parser.allowsBytes(table, position, bytes, budget),
    );
  }

  acceptBytes(bytes: Uint8Array): void {
    this.#accept(bytes);
  }

  accept(token: number): void {
    this.#accept(token);
  }

  save(): () => void {
    const place = this.#place;
    const inputs = this.#inputs.length;
    return () => {
      this.#inputs.length = inputs;
      this.#goTo(place);
    };
  }

  #goTo(place: Place): void {
    this.#place = place;
    this.#workIn = null;
    this.#move = null;
  }

  #accept(input: TextInput): void {
    this.#inputs.push(input);
    try {
      this.#inCall((budget) => this.#readInputs(budget));
    } catch (error) {
      // The next operation fails instead, as it does if reading goes on until then.
      if (error instanceof UnfinishedWork || error instanceof ApiError) return;
      this.#inputs.pop();
      this.#goTo(this.#place);
      throw error;
    }
  }

  /** Runs an operation at the end of all inputs. */
  #afterInputs<T>(operation: Operation<T>): T {
    return this.#inCall((budget) => {
      this.#readInputs(budget);
      return this.#run(operation, budget);
    });
  }

  #inCall<T>(work: (budget: WorkBudget) => T): T {
    return this.#budget.run((budget) => {
      this.#replaceDropped();
      try {
        return work(budget);
      } finally {
        const goesOn =
          this.#workIn !== null || this.#move !== null || this.#place.inputs < this.#inputs.length;
        this.#parser.tables.afterCall(this, goesOn);
      }
    });
  }

  #replaceDropped(): void {
    if (this.#place.handle.table === null) this.#goTo(startPlace(this.#parser));
    else if (this.#move?.to.table === null) this.#move = null;
  }

  #readInputs(budget: WorkBudget): void {
    while (this.#place.inputs < this.#inputs.length) {
      const { inputs } = this.#place;
      const read: Operation<TextPosition> = (table, position) =>
        this.#parser.advance(table, position, this.#inputs[inputs]!, budget);
      const position = this.#run(read, budget);
      this.#place = placeAt(this.#place.handle, position, inputs + 1);
    }
  }

  /** Runs an operation at the place, or goes on with it. */
  #run<T>(operation: Operation<T>, budget: WorkBudget): T {
    const table = this.#enterTable(budget);
    const outcome = nullOn(BudgetExceeded, () => ({
      result: operation(table, this.#place.position, budget),
    }));
    if (this.#parser.isFull(table)) {
      // The table's other users do not count, so that the text has the same end whatever came before.
      if (this.#workIn === 'own') throw new PieceTooLarge();
      this.#workIn = 'next';
      throw new BudgetExceeded();
    }
    this.#workIn = outcome === null ? (this.#workIn ?? 'shared') : null;
    if (outcome === null) throw new BudgetExceeded();
    return outcome.result;
  }

  /** Moves the place to the table of its next operation. One that goes on stays where its work is. */
  #enterTable(budget: WorkBudget): StateTable {
    const parser = this.#parser;
    if (this.#workIn === null || this.#workIn === 'next') {
      const { handle, position, inputs } = this.#place;
      const to = this.#move?.to ?? (this.#workIn === null ? parser.currentTable() : parser.newTable());
      if (to !== handle) {
        this.#move ??= new StateImport(handle, to, position.state);
        const state = this.#move.run(budget);
        this.#move = null;
        this.#place = placeAt(to, { ...position, state }, inputs);
      }
      if (this.#workIn === 'next') this.#workIn = 'own';
    }
    return this.#place.handle.table!;
  }
}
