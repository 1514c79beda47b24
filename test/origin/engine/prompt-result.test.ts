import { expect, it } from 'vitest';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { CHUNK, endless, longPrompt, shape } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';

/** Counts what structured cloning visits: a typed array is one value. */
function values(value: unknown): number {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return 1;
  return 1 + Object.values(value).reduce((sum: number, part) => sum + values(part), 0);
}

it.each([null, 0, 20])(
  'a prompt with %s top logprobs leaves the engine as few values, however long it is',
  async (top) => {
    const sent: number[] = [];
    for (const chunks of [1, 40]) {
      const driver = new Driver(new ScriptedRunner(shape(4)));
      driver.submit({ ...longPrompt('one', chunks * CHUNK), echo: true, promptTopLogprobs: top });
      await driver.finish();
      for (const report of driver.reports) {
        if (report.type !== 'step') continue;
        const events = report.events.flatMap(([, own]) => own);
        for (const event of events) if (event.type === 'prompt') sent.push(values(event));
      }
      const prompt = driver.eventsOf('one').find(({ type }) => type === 'prompt');
      expect(prompt).toMatchObject({ ids: { length: chunks * CHUNK } });
    }
    expect(sent).toEqual(top === null ? [3, 3] : [8, 8]);
  },
);

it('streams decode after every few scored positions of a prompt on a device, and its whole chunks are stored', async () => {
  const runner = new ScriptedRunner({ ...shape(4), maxPromptLogits: 3 });
  const driver = new Driver(runner, { prefixStoreBytes: storeBytes(runner, 8) });
  driver.submit(endless('stream', 40));
  await driver.step();
  const decodes = runner.decodes.length;
  driver.submit({ ...longPrompt('scored', 2 * CHUNK + 2), echo: true, promptTopLogprobs: 1 });
  while (!driver.eventsOf('scored').some(({ type }) => type === 'prompt')) await driver.step();
  expect(runner.prefills.slice(1)).toEqual([3, 3, 2, 3, 3, 2, 2]);
  expect(runner.decodes.length - decodes).toBe(7);
  expect(driver.engine.status.prefixStore).toMatchObject({ storedChunks: 4 });
  await driver.finish();
});
