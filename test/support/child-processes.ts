import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** What Linux says of processes. Null for one that has ended, also where nobody has asked for its exit code yet. */
function statOf(pid: number): { readonly parent: number; readonly cpuTicks: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name in parentheses may hold anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z') return null;
    return { parent: Number(fields[1]), cpuTicks: Number(fields[11]) + Number(fields[12]) };
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

/** Resolves when a process has burnt a tenth of a second from now on. */
export async function untilBusy(pid: number): Promise<void> {
  const ticks = (): number => statOf(pid)?.cpuTicks ?? Number.POSITIVE_INFINITY;
  for (const begun = ticks(); ticks() < begun + 10; ) await sleep(10);
}
