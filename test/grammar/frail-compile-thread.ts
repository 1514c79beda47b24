import { parentPort } from 'node:worker_threads';
import { compileProgram } from '../../origin/grammar/compile.ts';
import type { CompileJob } from '../../origin/grammar/thread/compile-messages.ts';

/** A compile thread with two defects: it hangs on one job and dies of another. */
parentPort?.on('message', ({ wire }: CompileJob) => {
  if (wire === '"hang"') for (;;);
  if (wire === '"die"') throw new Error('a defect of the compiler');
  parentPort?.postMessage({ program: compileProgram(JSON.parse(wire)) });
});
// The first compilation takes many times what later ones take.
compileProgram({
  type: 'json_schema',
  value: { type: 'object', properties: { a: { type: 'integer', minimum: 0 } } },
});
parentPort?.postMessage({ ready: true });
