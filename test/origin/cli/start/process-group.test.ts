import { devNull } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { OutputLog } from '../../../../origin/cli/start/output-log.ts';
import { startCommand } from '../../../../origin/cli/start/process-group.ts';
import type { ChildExit } from '../../../../origin/process/supervised-child.ts';

/** Runs a program. `ended` resolves when it is given up. */
function run(code: string, untilReady: (over: AbortSignal) => Promise<void>, persists = false) {
  const restarts: (number | null)[] = [];
  const { promise: ended, resolve: onEnd } = Promise.withResolvers<ChildExit>();
  const log = new OutputLog(devNull);
  const child = startCommand(
    { name: 'child', file: process.execPath, args: ['--eval', code], env: {}, log },
    {
      untilReady,
      onRestart: (exit) => restarts.push(exit.code),
      persists,
      restartMs: 300,
      onEnd,
      graceMs: 10_000,
    },
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

test('tries a child again that was ready once, if the others go on without it', async () => {
  const lives: number[] = [];
  const untilReady = (over: AbortSignal) => {
    lives.push(performance.now());
    return lives.length === 2 || lives.length === 3 ? never(over) : Promise.resolve();
  };
  const { child, restarts } = run('setTimeout(() => process.exit(7), 100)', untilReady, true);
  onTestFinished(() => child.close());
  await expect.poll(() => restarts.length, { timeout: 20_000 }).toBe(2);
  expect(lives.length).toBeGreaterThanOrEqual(4);
});

test('gives up a child that was never ready, also if the others go on without it', async () => {
  const { ended } = run('process.exit(7)', never, true);
  expect(await ended).toMatchObject({ code: 7 });
});

test('restarts a child that keeps dying right after it was ready with waits that double', async () => {
  const lives: number[] = [];
  const { child } = run('setTimeout(() => process.exit(7), 100)', () => {
    lives.push(performance.now());
    return Promise.resolve();
  });
  onTestFinished(() => child.close());
  await expect.poll(() => lives.length, { timeout: 20_000 }).toBe(4);
  const gaps = lives.slice(1).map((start, index) => start - lives[index]!);
  expect(gaps[1]).toBeGreaterThanOrEqual(300);
  expect(gaps[2]).toBeGreaterThanOrEqual(600);
});

test('does not restart a stopped child', async () => {
  const { child, restarts } = run('setInterval(() => undefined, 1000)', () => Promise.resolve());
  await expect.poll(() => child.state).toBe('ready');
  await child.close();
  expect(child.state).toBe('down');
  expect(restarts).toEqual([]);
});
