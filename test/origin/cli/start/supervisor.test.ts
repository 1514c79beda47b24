import { devNull } from 'node:os';
import { expect, test } from 'vitest';
import { OutputLog } from '../../../../origin/cli/start/output-log.ts';
import type { Command } from '../../../../origin/cli/start/process-group.ts';
import { Supervisor } from '../../../../origin/cli/start/supervisor.ts';

const program = (code: string): Command => ({
  name: 'child',
  file: process.execPath,
  args: ['--eval', code],
  env: {},
  log: new OutputLog(devNull),
});

const never = (over: AbortSignal) =>
  new Promise<void>((_, reject) => over.addEventListener('abort', () => reject(over.reason as Error)));

test('gives up a child that ends before it was ready', async () => {
  const restarts: (number | null)[] = [];
  const supervisor = new Supervisor(program('setTimeout(() => process.exit(7), 3500)'), {
    untilReady: never,
    onRestart: (_, code) => restarts.push(code),
  });
  expect(await supervisor.ended).toEqual({ code: 7 });
  expect(restarts).toEqual([]);
});

test('restarts a child that dies after it was ready, and gives up if it is not ready then', async () => {
  const restarts: (number | null)[] = [];
  let lives = 0;
  const supervisor = new Supervisor(program('setTimeout(() => process.exit(7), 500)'), {
    untilReady: (over) => {
      lives += 1;
      return lives === 1 ? Promise.resolve() : never(over);
    },
    onRestart: (_, code) => restarts.push(code),
  });
  await supervisor.ready;
  expect(await supervisor.ended).toEqual({ code: 7 });
  expect(restarts).toEqual([7]);
});

test('does not restart a stopped child', async () => {
  const supervisor = new Supervisor(program('setInterval(() => undefined, 1000)'), {
    untilReady: () => Promise.resolve(),
    onRestart: () => expect.unreachable(),
  });
  await supervisor.ready;
  await supervisor.stop(10_000);
  expect(await supervisor.ended).toEqual({ code: null });
});
