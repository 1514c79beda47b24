import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { EngineFailure } from '../../../origin/engine/runs/engine.ts';
import { EngineClient, spawnEngineThread } from '../../../origin/engine/thread/engine-client.ts';
import { RuntimeFault } from '../../../origin/model/model-runner.ts';
import { SparseLogits } from '../../../origin/model/sparse-logits.ts';
import { createEngineLocks } from '../../../origin/process/engine-locks.ts';
import type { SamplerPool } from '../../../origin/sampling/pool/sampler-pool.ts';
import { changedRunner } from '../../tools/gpu/runners.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { submission } from './support/submissions.ts';
import { syntheticEngine } from './support/synthetic-engine.ts';
import { VOCABULARY } from './support/vocabulary.ts';

/** What becomes known of a failed run, and which failures the engine survives. */

const shape = { slots: 4, contextLength: 64, prefillChunk: 8, vocabularySize: VOCABULARY, minRows: 1 };
const outOfMemory = new RuntimeFault('CUDA failure 2:\n out of memory', 'EP_FAIL', 'out-of-memory');
const illegalAddress = new RuntimeFault(
  'CUDA failure 700: an illegal memory access',
  'EP_FAIL',
  'device-lost',
);

/** A driver whose runner throws what `next` returns, unless it is null. */
function driverOf(next: (kind: string) => Error | null): Driver {
  const beforeRun = (kind: string) => {
    const fault = next(kind);
    if (fault !== null) throw fault;
  };
  return new Driver(new ScriptedRunner(shape, { beforeRun }));
}

const faultsOf = ({ reports }: Driver) =>
  reports.flatMap((report) => (report.type === 'fault' ? report.message : []));
const plain = (requestId: string) => submission({ requestId, ignoreEos: true });

describe('a failed run', () => {
  it('is reported in one line with the runtime’s code, its message and the next step', async () => {
    let fault: Error | null = outOfMemory;
    const driver = driverOf(() => fault);
    driver.submit(plain('first'));
    await driver.step();
    fault = null;
    driver.submit(plain('second'));
    await driver.finish();
    expect(faultsOf(driver)).toEqual([
      'EP_FAIL: CUDA failure 2: out of memory; set CONTINUO_SLOTS or CONTINUO_CONTEXT lower',
    ]);
    expect(driver.eventsOf('first').at(-1)).toMatchObject({ type: 'error', retryable: true });
    expect(driver.eventsOf('second').at(-1)).toMatchObject({ type: 'done' });
  });

  it.each(['prefill', 'decode'])(
    'of a lost device (%s) stops the engine at once, after its error events',
    async (broken) => {
      const driver = driverOf((kind) => (kind === broken ? illegalAddress : null));
      driver.submit(plain('first'));
      const failure = await driver.finish().catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(EngineFailure);
      expect(failure).toMatchObject({
        message: 'EP_FAIL: CUDA failure 700: an illegal memory access',
        cause: illegalAddress,
      });
      expect(driver.eventsOf('first').at(-1)).toMatchObject({ type: 'error', retryable: true });
    },
  );

  it('is the reason that the engine gives if it stops after several of them', async () => {
    const driver = driverOf(() => outOfMemory);
    for (const name of ['a', 'b']) {
      driver.submit(plain(name));
      await driver.step();
    }
    driver.submit(plain('c'));
    await expect(driver.step()).rejects.toThrow(
      /^3 runs .* in a row: EP_FAIL: CUDA failure 2: out of memory; set CONTINUO_SLOTS or/,
    );
  });
});

describe('a device that does not bring KV for the prefix store', () => {
  const long = (requestId: string) =>
    submission({ requestId, ignoreEos: true, prompts: [{ tokens: new Int32Array(30), maxTokens: 3 }] });

  function driverOfStore(fault: () => Error | null) {
    const runner = new ScriptedRunner(shape);
    const read = runner.kvBytes.read.bind(runner.kvBytes);
    runner.kvBytes.read = (...args) => {
      const thrown = fault();
      if (thrown !== null) throw thrown;
      read(...args);
    };
    return new Driver(runner, { prefixStoreBytes: storeBytes(runner, 100) });
  }

  it('fails no request, and is reported', async () => {
    const faults: Error[] = [outOfMemory];
    const driver = driverOfStore(() => faults.pop() ?? null);
    for (const name of ['first', 'second']) {
      driver.submit(long(name));
      await driver.finish();
      expect(driver.eventsOf(name).at(-1)).toMatchObject({ type: 'done' });
    }
    expect(faultsOf(driver)).toEqual([
      'a prefix could not be stored: EP_FAIL: CUDA failure 2: out of memory; ' +
        'set CONTINUO_SLOTS or CONTINUO_CONTEXT lower',
    ]);
  });

  it('stops the engine if it is lost', async () => {
    const driver = driverOfStore(() => illegalAddress);
    driver.submit(long('first'));
    await expect(driver.finish()).rejects.toBe(illegalAddress);
  });
});

/** A driver with logits on a device, which fails with `fault` when they are fetched after a decode run. */
function driverOfSparse(by: 'fetchWanted' | 'complete', fault: () => Error | null): Driver {
  let decoded = false;
  const runner = new ScriptedRunner(shape, { beforeRun: (kind) => (decoded = kind === 'decode') });
  const fail = () => {
    const thrown = decoded ? fault() : null;
    if (thrown !== null) throw thrown;
    return false;
  };
  const rows = [shape.slots, VOCABULARY] as const;
  const logits = new SparseLogits(new Float32Array(SparseLogits.length(...rows)), ...rows);
  const sparse = { logits, fetchWanted: () => false, complete: () => undefined, [by]: fail };
  // A pool that draws nothing, so that each sequence draws for itself.
  const pool = { begin: () => true, add: () => -1, run: () => {}, settle: () => true, retry: () => {} };
  const drawn = { ...pool, token: () => null, end: () => {} } as unknown as SamplerPool;
  return new Driver(changedRunner(runner, { sparse }), { pool: drawn });
}

describe.each(['fetchWanted', 'complete'] as const)('a device that does not bring logits (%s)', (by) => {
  it('fails the requests of the run, is reported, and later requests are computed', async () => {
    const faults: Error[] = [];
    const driver = driverOfSparse(by, () => faults.pop() ?? null);
    for (const name of ['first', 'second']) driver.submit(plain(name));
    while (!driver.eventsOf('second').some(({ type }) => type === 'token')) await driver.step();
    faults.push(outOfMemory);
    await driver.finish();
    driver.submit(plain('third'));
    await driver.finish();
    expect(faultsOf(driver)).toEqual([
      'EP_FAIL: CUDA failure 2: out of memory; set CONTINUO_SLOTS or CONTINUO_CONTEXT lower',
    ]);
    const ends = ['first', 'second', 'third'].map((name) => driver.eventsOf(name).at(-1));
    expect(ends).toMatchObject([
      { type: 'error', retryable: true },
      { type: 'error', retryable: true },
      { type: 'done' },
    ]);
  });

  it('stops the engine if it is lost', async () => {
    const driver = driverOfSparse(by, () => illegalAddress);
    driver.submit(plain('first'));
    driver.submit(plain('second'));
    await expect(driver.finish()).rejects.toMatchObject({ name: 'EngineFailure', cause: illegalAddress });
    expect(driver.eventsOf('first').at(-1)).toMatchObject({ type: 'error', retryable: true });
  });
});

/** A client of a thread that sends these reports after its first abort command. */
async function clientOf(reports: readonly unknown[]) {
  const script = `
    const { parentPort } = require('node:worker_threads');
    parentPort.postMessage({ type: 'ready' });
    parentPort.on('message', ({ type, submission }) => {
      if (type === 'stop') return parentPort.close();
      parentPort.postMessage({ type: 'admitted', requestId: submission.requestId });
      for (const report of ${JSON.stringify(reports)}) parentPort.postMessage(report);
      if (${JSON.stringify(reports)}.some(({ type }) => type === 'failed')) parentPort.close();
    });
  `;
  const told = { faults: [] as string[], deaths: [] as string[], lost: [] as string[], spawned: 0 };
  const event = Promise.withResolvers<void>();
  const client = new EngineClient({
    spawn: () => {
      told.spawned++;
      return new Worker(script, { eval: true });
    },
    restartDelayMs: 1,
    onFault: (message) => told.faults.push(message),
    onDeath: (reason) => told.deaths.push(reason),
    onDeviceLost: (reason) => {
      told.lost.push(reason);
      event.resolve();
    },
    onSteps: () => event.resolve(),
  });
  await client.start();
  return { client, told, event: event.promise };
}

const fault = (message: string) => ({ type: 'fault', message });
const status = { running: 0, waiting: 0, healthy: true };

it('failed runs are told, and the last one stays known', async () => {
  const { client, told, event } = await clientOf([
    fault('FAIL: MatMul of {3,1}'),
    fault('EP_FAIL: CUDA failure 2: out of memory'),
    { type: 'step', events: [], reports: [], status },
  ]);
  expect(client.lastFault).toBeNull();
  await client.submit(submission({ requestId: 'r' }), () => undefined);
  await event;
  expect(told.faults).toEqual(['FAIL: MatMul of {3,1}', 'EP_FAIL: CUDA failure 2: out of memory']);
  expect(client.lastFault).toBe('EP_FAIL: CUDA failure 2: out of memory');
  expect(client.status.healthy).toBe(true);
  await client.stop();
});

it('a thread that has lost its device is not replaced, and its requests get an error event', async () => {
  const message = 'EP_FAIL: CUDA failure 700';
  const { client, told, event } = await clientOf([
    { type: 'failed', message, permanent: false, deviceLost: true },
  ]);
  const events: unknown[] = [];
  await client.submit(submission({ requestId: 'r' }), (more) => events.push(...more));
  await event;
  expect(events).toMatchObject([{ type: 'error', code: 'upstream_error', retryable: true }]);
  expect(told).toEqual({ faults: [], deaths: [message], lost: [message], spawned: 1 });
  expect(client.lastFault).toBe(message);
  await client.stop();
});

it('a thread that ends while it holds the lock of the device frees it', async () => {
  const { data } = syntheticEngine();
  const engineLocks = createEngineLocks();
  const cell = new Int32Array(engineLocks);
  const worker = spawnEngineThread({ ...data, model: { ...data.model, engineLocks } });
  const exited = new Promise<void>((resolve) => worker.on('exit', () => resolve()));
  cell[0] = (worker as Worker).threadId + 1;
  await worker.terminate();
  await exited;
  expect(cell[0]).toBe(0);
});
