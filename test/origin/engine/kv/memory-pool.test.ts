import { expect, it } from 'vitest';
import { bufferPool } from '../../../../origin/engine/kv/disk/buffer-pool.ts';

it('allocates at most its limit, and passes returned buffers on in order', async () => {
  const pool = bufferPool(10, 25);
  const [one, two] = [pool.take(), pool.take()];
  expect(pool.take()).toBeNull();
  const waiting = [pool.wait(), pool.wait()];
  pool.give(two!);
  pool.give(one!);
  expect(await Promise.all(waiting)).toEqual([two, one]);
  expect(pool.take()).toBeNull();
  pool.give(one!);
  expect(pool.take()).toBe(one);
});

it('has one buffer if its limit is less, and none if there is no memory', async () => {
  expect(bufferPool(10, 1).take()).toHaveLength(10);
  const none = bufferPool(2 ** 60, 1);
  expect(none.take()).toBeNull();
  expect(await none.wait()).toBeNull();
});
