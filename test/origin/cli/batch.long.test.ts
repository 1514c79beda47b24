import { rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { lineOf } from '../../worker/batches/batch-client.ts';
import { KEY } from '../../worker/support/worker.ts';
import { workerForTests } from '../../worker/support/worker-for-tests.ts';
import { runCli } from './run-cli.ts';

const { worker } = workerForTests();
const file = path.join(tmpdir(), 'batch-command.jsonl');

const batch = (...words: string[]) =>
  runCli(['--json', 'batch', ...words], { environment: { CONTINUO_URL: worker.url, CONTINUO_API_KEY: KEY } });

test('runs a file, prints its results and fails if a line has none', async () => {
  writeFileSync(file, `${lineOf('a')}\n${lineOf('b')}\n`);
  const whole = await batch('run', file);
  expect([whole.code, whole.stdout.split('\n').length]).toEqual([0, 3]);
  expect(JSON.parse(whole.stdout.split('\n')[0]!)).toMatchObject({
    custom_id: 'a',
    response: { status_code: 200 },
  });
  const id = /batch_\w+/.exec(whole.stderr)![0];
  expect(JSON.parse((await batch('status', id)).stdout)).toMatchObject({ id, status: 'completed' });
  expect((await batch('get', id)).stdout).toBe(whole.stdout);
  expect((await batch('cancel', id)).stderr).toContain("Cannot cancel a batch with status 'completed'");
  writeFileSync(file, `${lineOf('a')}\nnone\n`);
  const partial = await batch('run', file);
  expect(partial.code).toBe(1);
  expect(partial.stderr).toContain('1 of 2 lines have no result');
  const started = JSON.parse((await batch('run', file, '--no-wait')).stdout) as { id: string };
  expect((await batch('get', started.id)).stdout.split('\n')).toHaveLength(2);
  expect((await batch('run', '/nowhere')).stderr).toContain('cannot be read');
});

test('sends a file above 64 MiB in parts', async () => {
  const blank = `${' '.repeat(1024 * 1024)}\n`.repeat(66);
  writeFileSync(file, `${lineOf('a')}\n${blank}${lineOf('b')}\n`);
  const { code, stdout } = await batch('run', file);
  expect([code, stdout.split('\n').length]).toEqual([0, 3]);
  const list = await worker.request('/v1/files?purpose=batch&limit=1');
  const { data } = (await list.json()) as { data: { bytes: number; filename: string }[] };
  expect(data[0]).toMatchObject({ bytes: statSync(file).size, filename: 'batch-command.jsonl' });
  rmSync(file);
});
