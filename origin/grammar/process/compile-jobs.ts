import { createContext, Script } from 'node:vm';
import type { Program } from '../program/program.ts';
import { type CompileJob, type CompileOutcome, type CompileResult, failed } from './compile-messages.ts';
import { leaveSignalsToParent } from './isolated-process.ts';

/** A process whose parent is dead and whose job hangs ends after so many times the job's limit. */
const ORPHAN_LIMIT = 2;

/** What a compile process does: answers each job with a program or an error until its parent is gone. */
export function answerJobs(compile: (wire: string, isLate: () => boolean) => Program): void {
  leaveSignalsToParent();
  process.on('disconnect', () => process.exit());
  process.on('message', ({ wire, limitMs }: CompileJob) => {
    const deadline = performance.now() + limitMs;
    const isLate = (): boolean => performance.now() > deadline;
    const outcome = withinTime(ORPHAN_LIMIT * limitMs, () => outcomeOf(() => compile(wire, isLate)));
    process.send?.(outcome satisfies CompileResult);
  });
  process.send?.({ ready: true } satisfies CompileResult);
}

function outcomeOf(compile: () => Program): CompileOutcome {
  try {
    return { program: compile() };
  } catch (error) {
    return failed(error);
  }
}

const room: { work: () => unknown } = { work: () => undefined };
const context = createContext(room);
const script = new Script('work()');

/** While a job runs nothing else does, neither a timer nor the news of the parent's death; but Node can stop a script. */
function withinTime<T>(timeout: number, work: () => T): T {
  room.work = work;
  return script.runInContext(context, { timeout }) as T;
}
