import { appendFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
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
  const bytes = 64 * 1024 * 1024 + 6;
  writeFileSync(file, '');
  truncateSync(file, bytes);
  appendFileSync(file, 'the end');
  const sent: [path: string, body: unknown][] = [];
  const time = { created_at: 0, expires_at: 0 };
  const created = { id: 'file-1', object: 'file', bytes, created_at: 0, filename: '', status: 'processed' };
  const upload = {
    id: 'u',
    object: 'upload',
    bytes,
    ...time,
    filename: '',
    purpose: 'batch',
    status: 'pending',
  };
  const replies: Readonly<Record<string, () => object>> = {
    '/v1/uploads': () => ({ ...upload, file: null }),
    '/v1/uploads/u/parts': () => ({
      id: `p${sent.length}`,
      object: 'upload.part',
      created_at: 0,
      upload_id: 'u',
    }),
    '/v1/uploads/u/complete': () => ({ ...upload, file: { ...created, purpose: 'batch' } }),
  };
  const answer: typeof fetch = async (url, init) => {
    const { pathname } = new URL(String(url));
    const { body } = init!;
    const part = body instanceof FormData ? (body.get('data') as File) : null;
    sent.push([pathname, part ? [part.size, await part.slice(-7).text()] : JSON.parse(body as string)]);
    const reply = replies[pathname];
    return reply ? Response.json(reply()) : Response.json({ error: { message: 'Seen.' } }, { status: 400 });
  };
  const environment = { CONTINUO_URL: worker.url, CONTINUO_API_KEY: KEY };
  await runCli(['batch', 'run', file], { environment, fetch: answer });
  expect(sent).toMatchObject([
    ['/v1/uploads', { bytes: bytes + 7, filename: 'batch-command.jsonl' }],
    ['/v1/uploads/u/parts', [bytes - 6, '\0'.repeat(7)]],
    ['/v1/uploads/u/parts', [13, 'the end']],
    ['/v1/uploads/u/complete', { part_ids: ['p2', 'p3'] }],
    ['/v1/batches', { input_file_id: 'file-1' }],
  ]);
  rmSync(file);
});
