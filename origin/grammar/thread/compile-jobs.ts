import { parentPort } from 'node:worker_threads';
import { toApiError } from '../../../shared/errors.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { compileProgram } from '../compile.ts';
import type { CompileJob, CompileResult } from './compile-messages.ts';

/** What the compile thread does: answers each job with a program or an error. A job that hangs is ended with it. */
function run(job: CompileJob): CompileResult {
  try {
    return { id: job.id, program: compileProgram(JSON.parse(job.wire) as WireConstraint) };
  } catch (error) {
    const { code, message, param } = toApiError(error);
    return { id: job.id, error: { code, message, param } };
  }
}

// The first compilation in a thread is several times slower than the next; this is it.
compileProgram({
  type: 'json_schema',
  value: { type: 'object', properties: { a: { type: 'integer', minimum: 0 } } },
});

parentPort?.on('message', (job: CompileJob) => {
  parentPort?.postMessage(run(job));
});
parentPort?.postMessage({ ready: true } satisfies CompileResult);
