import type { Slice } from '../quota/slice.ts';

/** What the object knows of an isolate. Plain data, so that it can be stored as JSON. */
export interface IsolateState {
  /** Number of the last decision that the object has applied. */
  cursor: number;
  /** Number of the last granted slice. */
  granted: number;
  slices: Slice[];
  /** Unix milliseconds of its last call. Stored with the next change, so it is older after a restart. */
  heardAt: number;
  /** Number of the last request that the object knows from it. */
  named: number;
  /** Unix milliseconds since which the object asks the upstreams for its requests. */
  lostSince?: number;
  /** The object has settled its requests without it, and ignores its decisions. */
  gone?: boolean;
}

/** Returns Unix milliseconds at which the first slice of an isolate ends; Infinity without slices. */
export const nextEndOf = ({ slices }: IsolateState): number =>
  slices.reduce((first, { endsAt }) => Math.min(first, endsAt), Number.POSITIVE_INFINITY);
