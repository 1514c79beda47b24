import type { WireConstraint } from '@continuo/shared/generation.ts';
import { compileProgram, type PatternList } from '../grammar/compile.ts';
import { parseExactJson } from '../grammar/exact-json.ts';
import { serveJobs } from './compile-jobs.ts';

/** Entry point of a compile process. */

// Warms up the process: the first compilation is several times slower than the next.
compileProgram({
  type: 'json_schema',
  value: { type: 'object', properties: { a: { type: 'integer', minimum: 0 } } },
});
serveJobs((wire) => compileProgram(parseExactJson(wire) as WireConstraint | PatternList));
