import { type ChildProcess, fork } from 'node:child_process';

export interface ProcessLimits {
  /** Of V8's heap. */
  readonly heapMiB: number;
  /** Of everything the process may write to, the heap and what a Node process reserves for itself included. */
  readonly dataMiB: number;
  readonly stackKiB: number;
}

/**
 * Starts a Node process with a channel and nothing else of this one's: no environment, no terminal. What it prints is
 * dropped, because a dying process prints what it was working on.
 */
export function startIsolatedProcess(entry: URL, limits?: ProcessLimits): ChildProcess {
  const own = limits === undefined ? null : limitedCommand(limits);
  return fork(entry, {
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    ...own,
  });
}

/** V8's limit leaves out typed arrays. On Linux the kernel bounds these, too, and writes no image of a dead process. */
function limitedCommand({ heapMiB, dataMiB, stackKiB }: ProcessLimits): {
  execPath?: string;
  execArgv: string[];
} {
  const options = [...process.execArgv, `--max-old-space-size=${heapMiB}`, `--stack-size=${stackKiB}`];
  if (process.platform !== 'linux') return { execArgv: options };
  const script = `ulimit -c 0; ulimit -d ${dataMiB * 1024}; exec "$0" "$@"`;
  return { execPath: '/bin/sh', execArgv: ['-c', script, process.execPath, ...options] };
}

/** Signals that a terminal or a launcher sends to a whole group are its first process's business, which drains. */
export function ignoreTerminationSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
}
