import { MessageChannel } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { TRIM_INTERVAL_MS } from '../../../../origin/engine/kv/slot-trimmer.ts';
import type { EngineCommand } from '../../../../origin/engine/messages.ts';
import { serveEngine } from '../../../../origin/engine/thread/engine-loop.ts';
import { Driver } from '../support/engine-driver.ts';
import { CHUNK, longPrompt, shape } from '../support/long-requests.ts';
import { ScriptedRunner } from '../support/scripted-runner.ts';

const LENGTH = 3 * CHUNK + 2;

it('free slots give their memory back one per interval, except cached prefixes; slots in use keep theirs', async () => {
  const runner = new ScriptedRunner(shape(3));
  const driver = new Driver(runner);
  for (const id of ['a', 'b']) driver.submit(longPrompt(id, LENGTH));
  driver.submit(longPrompt('long', 400));
  while (driver.engine.status.running !== 1) await driver.step();
  const { trim } = driver.engine;
  expect(trim()).toBe(true);
  expect(runner.discards).toEqual([3 * CHUNK]);
  for (let count = 0; count < 3; count++) {
    driver.now += TRIM_INTERVAL_MS;
    expect(trim()).toBe(false);
  }
  expect(runner.discards).toEqual([3 * CHUNK, 3 * CHUNK]);
});

it('an idle engine goes on until all free slots have given their memory back', async () => {
  const runner = new ScriptedRunner(shape(3));
  const { port1, port2 } = new MessageChannel();
  const send = (command: EngineCommand) => port2.postMessage(command);
  const served = serveEngine(
    port1,
    (hooks) => new Driver(runner, { ...hooks, now: () => performance.now() }).engine,
  );
  for (const id of ['a', 'b', 'c']) send({ type: 'submit', submission: longPrompt(id, LENGTH) });
  await expect.poll(() => runner.discards.length).toBe(3);
  send({ type: 'stop' });
  await served;
  port2.close();
});
