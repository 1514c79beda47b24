import { type CompileRequest, type CompileResponse, failureOutcome } from './compile-messages.ts';
import { CompilePool } from './compile-pool.ts';
import { ignoreTerminationSignals } from './isolated-process.ts';

/**
 * Entry of the compile server, the process that starts the compile processes. It is small, and this is why it exists:
 * to start a process, the kernel copies the page tables of the one that asks, which holds an origin up for tens of
 * milliseconds per GiB of its memory, and grammars that die of their limits make new processes necessary all the time.
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
