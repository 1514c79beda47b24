import type { OriginModel } from '../../../../shared/origin-model.ts';

/** How fast the paced origin answers; the prompt carries it as JSON. */
export interface Pace {
  /** Milliseconds before the answer begins. */
  readonly startMs: number;
  /** Milliseconds between two events, each in a write of its own; 0 = all events in one write. */
  readonly intervalMs: number;
  /** Tokens that share one event. */
  readonly tokensPerEvent: number;
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

/** Milliseconds of a clock that all processes of a machine share. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6;
