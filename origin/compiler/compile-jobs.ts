import { createContext, Script } from 'node:vm';
import type { Program } from '@continuo/grammar/program/program.ts';
import {
  type CompileJob,
  type CompileOutcome,
  type CompileResult,
  failureOutcome,
} from './compile-messages.ts';
import { ignoreTerminationSignals } from './isolated-process.ts';

/** If the parent process died, a hanging job ends after this multiple of its longest time. */
const ORPHAN_LIMIT_RATIO = 2;

/** The loop of a compile process: answers each job with a program or an error until the parent exits. */
export function serveJobs(compile: (wire: string) => Program): void {
  ignoreTerminationSignals();
  process.on('disconnect', () => process.exit());
  process.on('message', ({ wire, maxMs }: CompileJob) => {
    const outcome = runWithTimeout(ORPHAN_LIMIT_RATIO * maxMs, () => outcomeOf(() => compile(wire)));
    process.send?.(outcome satisfies CompileResult);
  });
  process.send?.({ ready: true } satisfies CompileResult);
}

function outcomeOf(compile: () => Program): CompileOutcome {
  try {
    return { program: compile() };
  } catch (error) {
    return failureOutcome(error);
  }
}

const sandbox: { work: () => unknown } = { work: () => undefined };
const context = createContext(sandbox);
const script = new Script('work()');

/** Runs `work` as a vm script, because Node can stop a script. A busy job blocks timers and events. */
function runWithTimeout<T>(timeout: number, work: () => T): T {
  sandbox.work = work;
  return script.runInContext(context, { timeout }) as T;
}
