import { compileProgram } from '../../../origin/grammar/compile.ts';
import type { CompiledGrammar } from '../../../origin/grammar/runtime/constraint.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import type { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import type { WireConstraint } from '../../../shared/generation.ts';

/** Compiles a constraint in this process. @throws ApiError if the constraint is invalid */
export const compileConstraint = (wire: WireConstraint, vocabulary: GrammarVocabulary): CompiledGrammar =>
  new GrammarRuntime(compileProgram(wire), vocabulary);
