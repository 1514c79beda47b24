import { type ChildProcess, fork } from 'node:child_process';

interface ProcessLimits {
  /** Limit of V8's heap. */
  readonly heapMiB: number;
  /** Limit of all writable memory, including the heap and what a Node process reserves. */
  readonly dataMiB: number;
  readonly stackKiB: number;
}

/**
 * Starts a Node process with an IPC channel, but without environment and terminal. Its output is dropped,
 * because a dying process prints the constraint.
 */
export function startIsolatedProcess(entry: URL, limits?: ProcessLimits): ChildProcess {
  const command = limits === undefined ? null : limitedCommand(limits);
  return fork(entry, {
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    ...command,
  });
}

/** V8's limit does not include typed arrays. On Linux the kernel limits them, and core dumps are disabled. */
function limitedCommand({ heapMiB, dataMiB, stackKiB }: ProcessLimits): {
  execPath?: string;
  execArgv: string[];
} {
  // Threads that collect garbage in parallel add to the counted CPU time and hardly shorten the elapsed time.
  const memory = [`--max-old-space-size=${heapMiB}`, `--stack-size=${stackKiB}`, '--single-threaded-gc'];
  const options = [...process.execArgv, ...memory];
  if (process.platform !== 'linux') return { execArgv: options };
  const script = `ulimit -c 0; ulimit -d ${dataMiB * 1024}; exec "$0" "$@"`;
  return { execPath: '/bin/sh', execArgv: ['-c', script, process.execPath, ...options] };
}

/** Ignores signals that a terminal sends to the whole process group. The main process ends this one. */
export function ignoreTerminationSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
}
