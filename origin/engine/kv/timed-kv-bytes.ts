import type { KvBytes } from '../../model/model-runner.ts';

/**
 * Measures the time that copies of KV take.
 * @param now milliseconds, with fractions, of a monotonic clock
 * @returns the same KV, and the seconds of all copies so far
 */
export function timedKvBytes(inner: KvBytes, now: () => number) {
  let milliseconds = 0;
  const timed = (copy: () => void): void => {
    const startedAt = now();
    copy();
    milliseconds += now() - startedAt;
  };
  const kvBytes: KvBytes = {
    positionBytes: inner.positionBytes,
    read: (slot, start, end, bytes) => timed(() => inner.read(slot, start, end, bytes)),
    write: (slot, start, parts) => timed(() => inner.write(slot, start, parts)),
    discard: (slot, start) => inner.discard(slot, start),
  };
  return { kvBytes, seconds: () => milliseconds / 1000 };
}
