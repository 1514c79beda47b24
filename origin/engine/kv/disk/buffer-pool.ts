import { MemoryPool } from '../prefix-memory.ts';

/** Returns buffers of `size` bytes, of which there are at most `limitBytes`, and at least one. */
export const bufferPool = (size: number, limitBytes: number): MemoryPool<Buffer> =>
  new MemoryPool<Buffer>(Math.max(1, Math.floor(limitBytes / size)), () => Buffer.allocUnsafeSlow(size));
