import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { createEngineLocks, freeAfterThread, startOnCuda } from '../../../origin/process/engine-locks.ts';

const SOURCE = new URL('../../../origin/process/engine-locks.ts', import.meta.url).href;
const STARTING = `
  const { parentPort, threadId, workerData } = require('node:worker_threads');
  import(${JSON.stringify(SOURCE)}).then(({ startOnCuda }) => {
    parentPort.postMessage('asks');
    startOnCuda(workerData, threadId, async (mayCapture) => parentPort.postMessage(mayCapture));
  });
`;
const [FIRST, SECOND] = [1001, 1002];

const mayCapture = (memory: SharedArrayBuffer, threadId: number) =>
  startOnCuda(memory, threadId, async (may) => may);

/** Another engine, after it has asked to start. It gets its answer within a millisecond, unless it waits. */
async function otherEngine(memory: SharedArrayBuffer) {
  const worker = new Worker(STARTING, { eval: true, workerData: memory });
  const { threadId } = worker;
  const told: unknown[] = [];
  worker.on('message', (message) => told.push(message));
  await once(worker, 'message');
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { told, threadId, ended: once(worker, 'exit') };
}

it('an engine captures graphs if no other is on CUDA; others that start meanwhile wait', async () => {
  const memory = createEngineLocks();
  const started = Promise.withResolvers<void>();
  const first = startOnCuda(memory, FIRST, async (may) => {
    await started.promise;
    return may;
  });
  const other = await otherEngine(memory);
  expect(other.told).toEqual(['asks']);
  started.resolve();
  expect(await first).toBe(true);
  await other.ended;
  expect(other.told).toEqual(['asks', false]);
});

it('an engine captures again after all others have ended: a reload loses no graphs', async () => {
  const memory = createEngineLocks();
  expect(await mayCapture(memory, FIRST)).toBe(true);
  expect(await mayCapture(memory, SECOND)).toBe(false);
  freeAfterThread(memory, FIRST);
  expect(await mayCapture(memory, FIRST)).toBe(false);
  for (const thread of [FIRST, SECOND]) freeAfterThread(memory, thread);
  for (let reload = 0; reload < 200; reload += 1) {
    expect(await mayCapture(memory, FIRST)).toBe(true);
    freeAfterThread(memory, FIRST);
  }
});

it('an engine whose start fails, or whose thread ends in it, holds up nobody', async () => {
  const memory = createEngineLocks();
  const fault = new Error('no memory');
  await expect(startOnCuda(memory, FIRST, () => Promise.reject(fault))).rejects.toBe(fault);
  void startOnCuda(memory, FIRST, () => new Promise(() => undefined));
  const other = await otherEngine(memory);
  expect(other.told).toEqual(['asks']);
  freeAfterThread(memory, FIRST);
  await other.ended;
  expect(other.told).toEqual(['asks', true]);
});

it('an engine without others captures, and so does one after it', async () => {
  for (const thread of [FIRST, SECOND]) {
    expect(await startOnCuda(undefined, thread, async (may) => may)).toBe(true);
  }
});
