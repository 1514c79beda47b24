import { childrenOf, statOf } from '../../../support/child-processes.ts';

/** Milliseconds of CPU that the workerd below this process has used so far (Linux). */
export function workerdCpuMs(): number {
  const own = childrenOf(process.pid)
    .map(statOf)
    .filter((stat) => stat?.name === 'workerd');
  if (own.length === 0) throw new Error('There is no workerd below this process.');
  return own.reduce((sum, stat) => sum + (stat?.cpuMs ?? 0), 0);
}
