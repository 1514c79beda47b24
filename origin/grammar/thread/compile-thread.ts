import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { toApiError } from '../../../shared/errors.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { compileProgram } from '../compile.ts';
import type { CompileJob, CompileResult } from './compile-messages.ts';

/** Entry of a compile thread: answers each job with a program or an error. A job that hangs is ended with the thread. */

/**
 * The scheduler's "nice" value: where all cores are busy, a compilation gets about a tenth of what a thread of the engine
 * gets. Less would let usual grammars wait for seconds.
 */
const NICE = 10;

function run({ wire, limitMs }: CompileJob): CompileResult {
  const deadline = performance.now() + limitMs;
  try {
    return {
      program: compileProgram(JSON.parse(wire) as WireConstraint, () => performance.now() > deadline),
    };
  } catch (error) {
    const { code, message, param } = toApiError(error);
    return { error: { code, message, param } };
  }
}

// The first compilation in a thread is several times slower than the next; this is it.
compileProgram({
  type: 'json_schema',
  value: { type: 'object', properties: { a: { type: 'integer', minimum: 0 } } },
});
// On Linux a priority belongs to the thread that sets it; elsewhere it would be the whole process's.
if (process.platform === 'linux') setPriority(NICE);

parentPort?.on('message', (job: CompileJob) => {
  parentPort?.postMessage(run(job));
});
parentPort?.postMessage({ ready: true } satisfies CompileResult);
