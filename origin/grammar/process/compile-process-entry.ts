import type { WireConstraint } from '../../../shared/generation.ts';
import { compileProgram } from '../compile.ts';
import { serveJobs } from './compile-jobs.ts';

/** Entry of a compile process. */

// The first compilation in a process is several times slower than the next; this is it.
compileProgram({
  type: 'json_schema',
  value: { type: 'object', properties: { a: { type: 'integer', minimum: 0 } } },
});
serveJobs((wire, isExpired) => compileProgram(JSON.parse(wire) as WireConstraint, isExpired));
