import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import {
  createEngineLocks,
  type DeviceTurns,
  freeAfterThread,
  startOnCuda,
} from '../../../origin/process/engine-locks.ts';

const SOURCE = new URL('../../../origin/process/engine-locks.ts', import.meta.url).href;
const [FIRST, SECOND] = [1001, 1002];

/** Runs code in another thread, with `startOnCuda`, `memory`, `cells` and `threadId`. */
function otherThread(memory: SharedArrayBuffer, code: string, cells = new SharedArrayBuffer(64)) {
  const script = `
    const { parentPort, threadId, workerData } = require('node:worker_threads');
    import(${JSON.stringify(SOURCE)}).then(async ({ startOnCuda }) => {
      const { memory } = workerData;
      const cells = new Int32Array(workerData.cells);
      const tell = (message) => parentPort.postMessage(message);
      ${code}
    });
  `;
  return new Worker(script, { eval: true, workerData: { memory, cells } });
}

const turnsOf = (memory: SharedArrayBuffer, threadId: number) =>
  startOnCuda(memory, threadId, async (turns) => turns!);

it('engines start on CUDA one after the other, also if a start fails or its thread ends', async () => {
  const memory = createEngineLocks();
  const fault = new Error('no memory');
  await expect(startOnCuda(memory, FIRST, () => Promise.reject(fault))).rejects.toBe(fault);
  void startOnCuda(memory, FIRST, () => new Promise(() => undefined));
  const told: unknown[] = [];
  const other = otherThread(
    memory,
    `tell('asks'); await startOnCuda(memory, threadId, async () => tell('starts'));`,
  );
  other.on('message', (message) => told.push(message));
  await once(other, 'message');
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(told).toEqual(['asks']);
  freeAfterThread(memory, FIRST);
  await once(other, 'exit');
  expect(told).toEqual(['asks', 'starts']);
});

it('no thread calls CUDA while another captures graphs, however often they do both', async () => {
  const memory = createEngineLocks();
  const shared = new SharedArrayBuffer(64);
  const cells = new Int32Array(shared);
  // Cell i: thread i is in a call; 8: one captures; 9: number of faults; 10: number of threads.
  const code = `
    const turns = await startOnCuda(memory, threadId, async (own) => own);
    const own = Atomics.add(cells, 10, 1);
    const fault = () => Atomics.add(cells, 9, 1);
    for (let time = 0; time < 20_000; time++) {
      turns.call(() => turns.call(() => {
        Atomics.store(cells, own, 1);
        if (Atomics.load(cells, 8) !== 0) fault();
        Atomics.store(cells, own, 0);
      }));
      if (time % 500 > 0) continue;
      turns.alone(() => {
        Atomics.store(cells, 8, 1);
        for (let look = 0; look < 1000; look++) if (cells.subarray(0, 4).some((calls) => calls !== 0)) fault();
        // The engine's own calls go on.
        turns.call(() => Atomics.store(cells, 8, 0));
      });
    }
  `;
  const threads = [1, 2, 3].map(() => otherThread(memory, code, shared));
  await Promise.all(threads.map((thread) => once(thread, 'exit')));
  expect([cells[9], cells[10]]).toEqual([0, 3]);
});

it('a thread that ends in a call or in a capture holds up no other', async () => {
  const memory = createEngineLocks();
  const turns = await turnsOf(memory, FIRST);
  const ending = async (method: 'call' | 'alone') => {
    const other = otherThread(
      memory,
      `const turns = await startOnCuda(memory, threadId, async (own) => own);
       turns.${method}(() => { tell('works'); for (;;); });`,
    );
    const { threadId } = other;
    await once(other, 'message');
    await other.terminate();
    freeAfterThread(memory, threadId);
  };
  await ending('call');
  expect(turns.alone!(() => 1)).toBe(1);
  await ending('alone');
  expect(turns.call(() => 2)).toBe(2);
});

it('places of ended engines are free again: reloads do not use them up', async () => {
  const memory = createEngineLocks();
  const kept: DeviceTurns = await turnsOf(memory, SECOND);
  for (let reload = 0; reload < 200; reload++) {
    const turns = await turnsOf(memory, FIRST);
    expect(turns.alone!(() => kept)).toBe(kept);
    freeAfterThread(memory, FIRST);
  }
});

it('an engine without others needs no turns', async () => {
  expect(await startOnCuda(undefined, FIRST, async (turns) => turns)).toBeUndefined();
});
