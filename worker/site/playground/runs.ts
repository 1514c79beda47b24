import type { Signal } from '@preact/signals';
import type { Run } from '../copy/run.ts';

/** More runs, or longer ones, are forgotten: the oldest first. */
const MAX_RUNS = 50;
const MAX_CHARACTERS = 500_000;

/** Keeps a run, and as many before it as there is room for. */
export function keepRun(runs: Signal<readonly Run[]>, run: Run): void {
  const kept: Run[] = [];
  let size = 0;
  for (const each of [...runs.peek(), run].toReversed()) {
    size += JSON.stringify(each).length;
    if (kept.length > 0 && (kept.length === MAX_RUNS || size > MAX_CHARACTERS)) break;
    kept.unshift(each);
  }
  runs.value = kept;
}
