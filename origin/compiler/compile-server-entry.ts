import { type CompileRequest, type CompileResponse, failureOutcome } from './compile-jobs.ts';
import { CompilePool } from './compile-pool.ts';
import { ignoreTerminationSignals } from './isolated-process.ts';

/**
 * Entry point of the compile server, a small process that starts the compile processes. The kernel copies the
 * page tables of a process that forks, which would stop the origin for tens of milliseconds per GiB of
 * memory. Hostile grammars make forks frequent.
 */

const compiler = new CompilePool();

ignoreTerminationSignals();
process.on('disconnect', async () => {
  await compiler.close();
  process.exit();
});
process.on('message', async ({ id, wire, tenantId }: CompileRequest) => {
  const outcome = await compiler.compile(wire, tenantId).then((program) => ({ program }), failureOutcome);
  if (process.connected) process.send?.({ id, outcome } satisfies CompileResponse);
});
