import { createContext, Script } from 'node:vm';
import type { Program } from '@continuo/grammar/program/program.ts';
import { type BugTrace, bugTrace } from '@continuo/shared/error-details.ts';
import { ApiError, type ErrorCode } from '@continuo/shared/errors.ts';
import { ignoreTerminationSignals } from './isolated-process.ts';

/** Message to a compile process, one at a time. */
export interface CompileJob {
  /** A WireConstraint or a PatternList as JSON. */
  readonly wire: string;
  readonly maxMs: number;
}

/** Message from a compile process: `ready` once, then one outcome per job. */
export type CompileResult = { readonly ready: true } | CompileOutcome;

export type CompileOutcome =
  | { readonly program: Program }
  | { readonly error: { readonly code: ErrorCode; readonly message: string; readonly param: string | null } }
  | { readonly defect: BugTrace };

/** Message to the compile server. */
export interface CompileRequest {
  readonly id: number;
  /** A WireConstraint or a PatternList as JSON. */
  readonly wire: string;
  readonly tenantId: string;
}

/** Message from the compile server, one per request. */
export interface CompileResponse {
  readonly id: number;
  readonly outcome: CompileOutcome;
}

export function failureOutcome(thrown: unknown): CompileOutcome {
  if (!(thrown instanceof ApiError)) return { defect: bugTrace(thrown) };
  const { code, message, param } = thrown;
  return { error: { code, message, param } };
}

/** @throws ApiError of a failed compilation; a defect of the compiler as an Error with the same trace */
export function programOf(outcome: CompileOutcome): Program {
  if ('program' in outcome) return outcome.program;
  if ('defect' in outcome) {
    const { name, frames } = outcome.defect;
    throw Object.assign(new Error('The compiler failed.'), { name, stack: [name, ...frames].join('\n') });
  }
  const { code, message, param } = outcome.error;
  throw new ApiError(code, message, { param });
}

export function shutdownError(): ApiError {
  return new ApiError('server_is_overloaded', 'The server is shutting down.');
}

/** Too many grammars wait, or one has had too little CPU time. */
export function busyError(): ApiError {
  return new ApiError(
    'server_is_overloaded',
    'The server is too busy to compile grammars. Retry the request.',
  );
}

/** The process died for a reason that may be unrelated to the grammar. */
export function processDiedError(): ApiError {
  return new ApiError(
    'upstream_error',
    'The process that compiles grammars stopped unexpectedly. Retry the request.',
  );
}

/** If the parent process died, a hanging job ends after this multiple of its longest time. */
const ORPHAN_LIMIT_RATIO = 2;

/** The loop of a compile process: answers each job with a program or an error until the parent exits. */
export function serveJobs(compile: (wire: string) => Program): void {
  const runWithTimeout = workLimiter();
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

/** Returns a function that runs work as a vm script, because Node can stop one. A busy job blocks timers. */
function workLimiter() {
  const sandbox: { work: () => unknown } = { work: () => undefined };
  const context = createContext(sandbox);
  const script = new Script('work()');
  return <T>(timeout: number, work: () => T): T => {
    sandbox.work = work;
    return script.runInContext(context, { timeout }) as T;
  };
}
