import { compileProgram } from '../../../origin/grammar/compile.ts';
import { serveJobs } from '../../../origin/grammar/process/compile-jobs.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { WireConstraint } from '../../../shared/generation.ts';

/** A compile process with defects: what it does depends on the constraint. */

const DEFECTS: Readonly<Record<string, (argument: string) => unknown>> = {
  hang: () => {
    for (;;);
  },
  die: () => {
    throw new Error('a defect of the compiler');
  },
  exit: () => process.exit(3),
  signal: (name) => process.kill(process.pid, name),
  /** What Node ends a process for, not a thread: the array grows past the heap's limit in one piece. */
  array: () => {
    const list: number[] = [];
    for (;;) list.push(1.5);
  },
  objects: () => {
    const list: object[] = [];
    for (;;) list.push({ at: list.length, more: [1, 2, 3] });
  },
  /** Outside the heap. Tells how many pieces of 64 MiB there were. */
  typed: () => {
    const list: Uint8Array[] = [];
    try {
      for (;;) list.push(new Uint8Array(2 ** 26).fill(1));
    } catch {
      throw new ApiError('invalid_grammar', `${list.length} pieces`);
    }
  },
  /** Answers with what it knows of its surroundings, as an error's text. */
  environment: () => {
    const names = Object.keys(process.env).filter((name) => !name.startsWith('NODE_CHANNEL_'));
    throw new ApiError('invalid_grammar', `names: ${names.join(' ')}`);
  },
};

// The first compilation takes many times what later ones take.
compileProgram({ type: 'json_object' });
serveJobs((wire) => {
  const constraint = JSON.parse(wire) as WireConstraint | { readonly defect: string; readonly with: string };
  if ('type' in constraint) return compileProgram(constraint);
  DEFECTS[constraint.defect]?.(constraint.with);
  throw new Error('no defect after all');
});
