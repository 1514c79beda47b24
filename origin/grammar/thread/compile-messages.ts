import type { ErrorCode } from '../../../shared/errors.ts';
import type { Program } from '../program/program.ts';

/** To the compile thread, one at a time. */
export interface CompileJob {
  /** A WireConstraint as JSON. */
  readonly wire: string;
  readonly limitMs: number;
}

/** From the compile thread: `ready` once, then exactly one answer per job. */
export type CompileResult =
  | { readonly ready: true }
  | { readonly program: Program }
  | { readonly error: { readonly code: ErrorCode; readonly message: string; readonly param: string | null } };
