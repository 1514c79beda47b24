import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { originHealth } from '../../../shared/origin-model.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { eventsOf } from './generation-events.ts';
import { OriginProcess } from './origin-process.ts';

/** Errors of a device, injected into the runs of a real origin process. */

const OUT_OF_MEMORY = 'CUDA failure 2: out of memory ; GPU=0';
const ILLEGAL_ADDRESS = 'CUDA failure 700: an illegal memory access was encountered ; GPU=0';

async function originWithFaults() {
  const folder = newDirectory();
  const file = join(folder, 'fault');
  const preload = new URL('./failing-runs.ts', import.meta.url).href;
  const origin = new OriginProcess({ NODE_OPTIONS: `--import=${preload}`, FAULT_FILE: file });
  onTestFinished(() => void origin.child.kill('SIGKILL'));
  await origin.line('loaded');
  return {
    origin,
    fail: (message: string) => writeFileSync(file, message),
    heal: () => rmSync(file),
    lastEvent: async () => (await eventsOf(await origin.generate({}))).at(-1),
    faultInHealth: async () => {
      const health = originHealth.parse(await (await origin.operator('/health')).json());
      return health.models[0]?.reason;
    },
  };
}

it('a run without memory fails its request with a retryable error, and the engine goes on', async () => {
  const { origin, fail, heal, lastEvent, faultInHealth } = await originWithFaults();
  expect(await faultInHealth()).toBeUndefined();
  fail(OUT_OF_MEMORY);
  for (const _ of [1, 2]) expect(await lastEvent()).toMatchObject({ type: 'error', retryable: true });
  heal();
  expect(await lastEvent()).toMatchObject({ type: 'done' });
  const reason = `EP_FAIL: ${OUT_OF_MEMORY}; set CONTINUO_SLOTS or CONTINUO_CONTEXT lower`;
  expect(await faultInHealth()).toBe(reason);
  expect(origin.lines.filter(({ msg }) => msg === 'run failed')).toMatchObject([
    { level: 'error', model: 'continuo-mini', reason },
  ]);
});

it('a lost device ends the process with its name and error in the last line, after the streams have ended', async () => {
  const { origin, fail, lastEvent } = await originWithFaults();
  fail(ILLEGAL_ADDRESS);
  expect(await lastEvent()).toMatchObject({ type: 'error', code: 'upstream_error', retryable: true });
  expect(await origin.exit).toBe(1);
  expect(origin.stderr).toBe(
    `continuo origin: cpu is lost to this process: EP_FAIL: ${ILLEGAL_ADDRESS}; ` +
      'check it (nvidia-smi lists the cards), then start the origin again\n',
  );
});
