import type { OriginModel } from '../../../shared/generation.ts';

/** How the origin without a model goes about a request; written in its prompt as JSON. */
export interface Pace {
  /** Milliseconds before the answer begins. */
  readonly startMs: number;
  /** Milliseconds between two tokens, each in a write of its own; 0 = all at once. */
  readonly intervalMs: number;
}

export const PACED_MODEL: OriginModel = {
  id: 'paced',
  created: 0,
  contextLength: 1_000_000,
  vocabularySize: 256,
  infill: false,
  aliases: [],
  defaults: {},
  state: 'loaded',
};

/** Milliseconds of a clock that all processes of this machine share. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6;
