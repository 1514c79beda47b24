import { devNull } from 'node:os';
import { expect, test } from 'vitest';
import { OutputLog } from '../../../../origin/cli/start/output-log.ts';
import { startCommand } from '../../../../origin/cli/start/process-group.ts';
import type { ChildExit } from '../../../../origin/process/supervised-child.ts';

/** Runs a program. `ended` resolves when it is given up. */
function run(code: string, untilReady: (over: AbortSignal) => Promise<void>) {
  const restarts: (number | null)[] = [];
  const { promise: ended, resolve: onEnd } = Promise.withResolvers<ChildExit>();
  const log = new OutputLog(devNull);
  const child = startCommand(
    { name: 'child', file: process.execPath, args: ['--eval', code], env: {}, log },
    { untilReady, onRestart: (exit) => restarts.push(exit.code), onEnd, graceMs: 10_000 },
  );
  return { child, ended, restarts };
}

const never = (over: AbortSignal) =>
  new Promise<void>((_, reject) => over.addEventListener('abort', () => reject(over.reason as Error)));

test('gives up a child that ends before it was ready', async () => {
  const { ended, restarts } = run('setTimeout(() => process.exit(7), 3500)', never);
  expect(await ended).toMatchObject({ code: 7 });
  expect(restarts).toEqual([]);
});

test('restarts a child that dies after it was ready, and gives up if it is not ready then', async () => {
  let lives = 0;
  const { ended, restarts } = run('setTimeout(() => process.exit(7), 500)', (over) => {
    lives += 1;
    return lives === 1 ? Promise.resolve() : never(over);
  });
  expect(await ended).toMatchObject({ code: 7 });
  expect(restarts).toEqual([7]);
});

test('does not restart a stopped child', async () => {
  const { child, restarts } = run('setInterval(() => undefined, 1000)', () => Promise.resolve());
  await expect.poll(() => child.state).toBe('ready');
  await child.close();
  expect(child.state).toBe('down');
  expect(restarts).toEqual([]);
});
