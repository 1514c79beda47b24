import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

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

/**
 * Added to the "nice" value. If all cores are busy, a compilation gets about a tenth of an engine thread's
 * time. With less, ordinary grammars would take seconds.
 */
const NICE_INCREMENT = 10;
const MAX_NICE = 19;

/**
 * Returns the milliseconds of CPU time that a process has used; where the system does not tell it, all time.
 */
export function cpuMsOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // "pid (name) state …": user and system time are fields 14 and 15, in ticks of 10 ms.
    const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12);
    return 10 * (Number(user) + Number(system));
  } catch {
    return performance.now();
  }
}

/**
 * Call after startup, because startup at low priority takes seconds on busy cores. On Linux a priority
 * belongs to a thread, and later threads inherit it.
 */
export function lowerPriority(pid: number): void {
  const niceness = Math.min(MAX_NICE, getPriority() + NICE_INCREMENT);
  for (const thread of threadsOf(pid)) {
    try {
      setPriority(thread, niceness);
    } catch {
      // The thread has ended, or the system has no priorities.
    }
  }
}

function threadsOf(pid: number): number[] {
  if (process.platform !== 'linux') return [pid];
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    // The process has ended; its owner receives the exit event.
    return [];
  }
}
