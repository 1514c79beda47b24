import type { SearchTargets } from '../../../../origin/engine/text/text-search.ts';
import { TextSet } from '../../../../origin/engine/text/text-set.ts';
import { compileProgram } from '../../../../origin/grammar/compile.ts';
import { PatternSet } from '../../../../origin/grammar/runtime/pattern-set.ts';

/** Compiles patterns in this process. @throws ApiError for an invalid one */
export const patternSet = (value: readonly (string | null)[], field = 'stop_regex'): PatternSet =>
  new PatternSet(compileProgram({ type: 'patterns', field, value }));

export const targets = (texts: readonly string[], sources: readonly string[] = []): SearchTargets => ({
  texts: new TextSet(texts),
  patterns: sources.length === 0 ? null : patternSet(sources),
  sources,
});
