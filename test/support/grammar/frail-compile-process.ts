import { serveJobs } from '../../../origin/compiler/compile-jobs.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { WireConstraint } from '../../../shared/generation.ts';

/** A compile process that fails in the way that the constraint names. */

const DEFECTS: Readonly<Record<string, (argument: string) => unknown>> = {
  hang: () => {
    for (;;);
  },
  die: () => {
    throw new Error('a defect of the compiler');
  },
  exit: () => process.exit(3),
  signal: (name) => process.kill(process.pid, name),
  /** Uses no CPU time for so many milliseconds, as on a machine that pauses, and compiles then. */
  pause: (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms)),
  /** One array that exceeds the heap limit. Node ends the process, even if this runs in a thread. */
  array: () => {
    const list: number[] = [];
    for (;;) list.push(1.5);
  },
  objects: () => {
    const list: object[] = [];
    for (;;) list.push({ at: list.length, more: new Array<number>(1_000).fill(1.5) });
  },
  /** Allocates outside the heap. The message is the number of 64 MiB arrays. */
  typed: () => {
    const list: Uint8Array[] = [];
    try {
      for (;;) list.push(new Uint8Array(2 ** 26).fill(1));
    } catch {
      throw new ApiError('invalid_grammar', `${list.length} pieces`);
    }
  },
  /** Fails with the names of the environment's variables. */
  environment: () => {
    const names = Object.keys(process.env).filter((name) => !name.startsWith('NODE_CHANNEL_'));
    throw new ApiError('invalid_grammar', `names: ${names.join(' ')}`);
  },
};

// Warms up the process.
compileProgram({ type: 'json_object' });
serveJobs((wire) => {
  const constraint = JSON.parse(wire) as WireConstraint | { readonly defect: string; readonly with: string };
  if ('type' in constraint) return compileProgram(constraint);
  DEFECTS[constraint.defect]?.(constraint.with);
  if (constraint.defect === 'pause') return compileProgram({ type: 'json_object' });
  throw new Error('no defect after all');
});
