import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Environment without settings of the user: programs, and the modules that Node has compiled. */
export const bareEnvironment = (): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
});

/** Clock ticks per second in /proc; a constant of the Linux ABI. */
const TICKS_PER_SECOND = 100;

interface ProcessStat {
  readonly name: string;
  readonly parent: number;
  /** User and system time. */
  readonly cpuMs: number;
}

/** Reads a process's state from /proc (Linux). Returns null if it has ended, even if it is still a zombie. */
export function statOf(pid: number): ProcessStat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // "pid (name) state ppid …"; the name may hold anything.
    const end = text.lastIndexOf(')');
    const fields = text.slice(end + 2).split(' ');
    if (fields[0] === 'Z') return null;
    const ticks = Number(fields[11]) + Number(fields[12]);
    const name = text.slice(text.indexOf('(') + 1, end);
    return { name, parent: Number(fields[1]), cpuMs: (ticks * 1000) / TICKS_PER_SECOND };
  } catch {
    return null;
  }
}

export function childrenOf(pid: number): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((other) => statOf(other)?.parent === pid);
}

/** Resolves when a process has ended. */
export async function untilEnded(pid: number): Promise<void> {
  while (statOf(pid) !== null) await sleep(10);
}

/** Resolves when a process has used another 0.1 s of CPU time. */
export async function untilBusy(pid: number): Promise<void> {
  const cpuMs = (): number => statOf(pid)?.cpuMs ?? Number.POSITIVE_INFINITY;
  for (const begun = cpuMs(); cpuMs() < begun + 100; ) await sleep(10);
}
