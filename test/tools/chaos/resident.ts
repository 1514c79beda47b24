import { readdirSync, readFileSync } from 'node:fs';
import type { System } from '../../support/system.ts';

const statusOf = (pid: string): string => readFileSync(`/proc/${pid}/status`, 'utf8');

/** Returns the pid of the system's workerd (Linux only). */
export function workerdOf({ launcher }: System): string {
  const parentOf = (pid: string) => /^PPid:\s+(\d+)/m.exec(statusOf(pid))?.[1] ?? '0';
  const isOwn = (pid: string): boolean => {
    for (let at = pid; at !== '0'; at = parentOf(at)) if (at === String(launcher.pid)) return true;
    return false;
  };
  const found = readdirSync('/proc').find((pid) => {
    try {
      return /^\d+$/.test(pid) && /^Name:\s+workerd$/m.test(statusOf(pid)) && isOwn(pid);
    } catch {
      return false; // the process has ended
    }
  });
  if (found === undefined) throw new Error('there is no workerd');
  return found;
}

/** Returns the resident memory of a process. */
export const residentMiB = (pid: string): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(statusOf(pid))?.[1]) / 1024;
