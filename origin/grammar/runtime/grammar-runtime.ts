import { ApiError } from '@continuo/shared/errors.ts';
import { bytesOf, type TokenBytes } from '../automaton/token-bytes.ts';
import { isNamed } from '../automaton/token-path.ts';
import { type Program, programBytes } from '../program/program.ts';
import type { CompiledGrammar, Constraint } from './constraint.ts';
import { GrammarParser, type TableLimits } from './grammar-parser.ts';
import type { GrammarVocabulary } from './grammar-vocabulary.ts';
import { SequenceConstraint } from './sequence-constraint.ts';
import { StepBudget } from './step-budget.ts';

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
