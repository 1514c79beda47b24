import { expect, test, vi } from 'vitest';
import { openAccount } from '../../../../../worker/site/account/account.ts';
import { fileFault, uploadFile } from '../../../../../worker/site/account/batches/file-upload.ts';
import { serve } from '../fake-account.ts';

const MIB = 1024 * 1024;

/** Answers the parts of uploads with these statuses in turn; 0 = the connection breaks half-way. */
function serveParts(statuses: number[]): number[] {
  const sizes: number[] = [];
  class Part {
    readonly upload = { onprogress: (_: { loaded: number }) => undefined };
    onload = () => undefined;
    onerror = () => undefined;
    onabort = () => undefined;
    status = 0;
    responseText = '';
    readonly statusText = '';
    open() {}
    abort() {}
    setRequestHeader() {}
    getResponseHeader = () => null;
    send(form: FormData) {
      const { size } = form.get('data') as Blob;
      sizes.push(size);
      this.status = statuses.shift() ?? 200;
      this.upload.onprogress({ loaded: size / 2 });
      const error = { code: 'x', type: 'x', message: 'Too many files.', param: null };
      this.responseText = JSON.stringify(this.status === 200 ? { id: `part-${sizes.length}` } : { error });
      if (this.status === 0) this.onerror();
      else this.onload();
    }
  }
  vi.stubGlobal('XMLHttpRequest', Part);
  vi.stubGlobal('location', { host: 'test.local' });
  return sizes;
}

const file = {
  name: 'in.jsonl',
  size: 20 * MIB,
  slice: (from: number, to: number) => new Blob([new Uint8Array(Math.min(to, 20 * MIB) - from)]),
} as unknown as File;

const start = () => {
  const sent = serve(({ path }) =>
    path.endsWith('/complete') ? { file: { id: 'file-1' } } : { id: 'upload-1' },
  );
  const told: number[] = [];
  const run = {
    account: openAccount('sk-test', Date.now),
    file,
    progress: { id: null, parts: [] },
    onSent: (bytes: number) => told.push(bytes / MIB),
    signal: new AbortController().signal,
  };
  return { run, sent, told };
};

test('a file is sent in parts of 8 MiB, with its progress', async () => {
  const { run, sent, told } = start();
  const sizes = serveParts([]);
  expect(await uploadFile(run)).toBe('file-1');
  expect(sizes).toEqual([8 * MIB, 8 * MIB, 4 * MIB]);
  expect(told).toEqual([0, 4, 8, 12, 16, 18, 20]);
  expect(sent.map(({ path, body }) => [path, body])).toEqual([
    ['/v1/uploads', { filename: 'in.jsonl', purpose: 'batch', bytes: 20 * MIB }],
    ['/v1/uploads/upload-1/complete', { part_ids: ['part-1', 'part-2', 'part-3'] }],
  ]);
});

test('an upload that breaks at 60 % continues with the part that is missing', async () => {
  const { run, sent, told } = start();
  const sizes = serveParts([200, 0]);
  await expect(uploadFile(run)).rejects.toMatchObject({ kind: 'unreachable' });
  // Of the second part, nothing is kept: it broke at 12 MiB, or 60 %.
  expect(told).toEqual([0, 4, 8, 12, 8]);
  expect(await uploadFile(run)).toBe('file-1');
  expect(sizes).toEqual([8 * MIB, 8 * MIB, 8 * MIB, 4 * MIB]);
  expect(sent.map(({ path }) => path)).toEqual(['/v1/uploads', '/v1/uploads/upload-1/complete']);
  expect(sent[1]!.body).toEqual({ part_ids: ['part-1', 'part-3', 'part-4'] });
});

test('a part that the server refuses says why', async () => {
  const { run } = start();
  serveParts([409]);
  await expect(uploadFile(run)).rejects.toMatchObject({ status: 409, message: 'Too many files.' });
});

test('an empty file and one above 200 MiB are refused before they are sent', () => {
  expect(fileFault({ size: 0 })).toContain('empty');
  expect(fileFault({ size: 200 * MIB })).toBeNull();
  expect(fileFault({ size: 200 * MIB + 1 })).toContain('201 MiB');
});
