import type { ErrorCode } from '../../../shared/errors.ts';
import type { Program } from '../program/program.ts';

/** To the compile thread: a wire constraint as JSON. */
export interface CompileJob {
  readonly id: number;
  readonly wire: string;
}

/** From the compile thread: `ready` once, then exactly one answer per job. */
export type CompileResult =
  | { readonly ready: true }
  | { readonly id: number; readonly program: Program }
  | {
      readonly id: number;
      readonly error: { readonly code: ErrorCode; readonly message: string; readonly param: string | null };
    };
