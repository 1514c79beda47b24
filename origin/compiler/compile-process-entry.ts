import { compileProgram, type PatternList } from '@continuo/grammar/compile.ts';
import { parseExactJson } from '@continuo/grammar/rules/exact-json.ts';
import type { WireConstraint } from '@continuo/shared/generation.ts';
import { serveJobs } from './compile-jobs.ts';

/** Entry point of a compile process. */

// Warms up the process: the first compilation is several times slower than the next.
compileProgram({
  type: 'json_schema',
  value: { type: 'object', properties: { a: { type: 'integer', minimum: 0 } } },
});
serveJobs((wire) => compileProgram(parseExactJson(wire) as WireConstraint | PatternList));
