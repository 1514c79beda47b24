import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks per second of /proc; a constant of Linux' interface to programs. */
const TICKS_PER_SECOND = 100;

interface ProcessStat {
  readonly name: string;
  readonly parent: number;
  /** User and system time. */
  readonly cpuMs: number;
}

function statOf(pid: number): ProcessStat | null {
  try {
    // "pid (name) state ppid …"; the name may hold spaces and brackets.
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { name, parent: Number(fields[1]), cpuMs: (ticks * 1000) / TICKS_PER_SECOND };
  } catch {
    return null;
  }
}

/** Milliseconds of CPU that the workerd below this process has used so far (Linux). */
export function workerdCpuMs(): number {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  const own = pids.map(statOf).filter((stat) => stat?.name === 'workerd' && stat.parent === process.pid);
  if (own[0] === undefined || own[0] === null) throw new Error('There is no workerd below this process.');
  return own.reduce((sum, stat) => sum + (stat?.cpuMs ?? 0), 0);
}
