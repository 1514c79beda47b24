import { createHash } from 'node:crypto';
import OpenAI, { toFile } from 'openai';
import { describe, expect, test } from 'vitest';
import { type Upload, uploadObject } from '../../../shared/batch.ts';
import { tenantWithKey } from '../admin/admin-client.ts';
import { KEY } from '../support/worker.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker } = sharedWorker();

interface Reply {
  readonly status: number;
  readonly body: Upload & { readonly error: { readonly code: string; readonly param: string | null } };
}

async function call(path: string, body: unknown = {}, key = KEY): Promise<Reply> {
  const isForm = body instanceof FormData;
  const response = await worker.request(`/v1/uploads${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...(!isForm && { 'content-type': 'application/json' }) },
    body: isForm ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Reply['body'] };
}

async function create(bytes: number, key = KEY): Promise<string> {
  const asked = { filename: 'in.jsonl', purpose: 'batch', bytes, mime_type: 'application/jsonl' };
  return (await call('', asked, key)).body.id;
}

function part(id: string, content: string | Uint8Array<ArrayBuffer>, key = KEY): Promise<Reply> {
  const form = new FormData();
  form.set('data', new Blob([content]));
  return call(`/${id}/parts`, form, key);
}

const partId = async (id: string, content: string): Promise<string> => (await part(id, content)).body.id;

const contentOf = async (file: string): Promise<string> =>
  (await worker.request(`/v1/files/${file}/content`)).text();

describe('an upload in parts', () => {
  test('by openai-node becomes a file, in the order of the part ids', async () => {
    const client = new OpenAI({ baseURL: `${worker.url}/v1`, apiKey: KEY });
    const contents = ['{"a":1}\n', '{"b":', '2}\n'];
    const bytes = contents.join('').length;
    const created = await client.uploads.create({
      filename: 'in.jsonl',
      purpose: 'batch',
      bytes,
      mime_type: 'application/jsonl',
    });
    expect(uploadObject.parse(created)).toMatchObject({ status: 'pending', bytes, file: null });
    const ids: string[] = [];
    for (const content of contents.toReversed()) {
      const data = await toFile(Buffer.from(content), 'part');
      ids.unshift((await client.uploads.parts.create(created.id, { data })).id);
    }
    const md5 = createHash('md5').update(contents.join('')).digest('hex');
    const done = await client.uploads.complete(created.id, { part_ids: ids, md5 });
    expect(done).toMatchObject({
      id: created.id,
      status: 'completed',
      file: { bytes, filename: 'in.jsonl' },
    });
    expect(await contentOf(done.file!.id)).toBe(contents.join(''));
    expect(await client.files.retrieve(done.file!.id)).toEqual(done.file);
    expect(await client.uploads.complete(created.id, { part_ids: ids })).toEqual(done);
  });

  test('of several parts of R2 arrives unchanged', async () => {
    const bytes = Uint8Array.from({ length: 6_000_001 }, (_, index) => (index * index) % 251);
    const id = await create(2 * bytes.length);
    const ids = [(await part(id, bytes)).body.id, (await part(id, bytes)).body.id];
    const { body } = await call(`/${id}/complete`, { part_ids: ids });
    const response = await worker.request(`/v1/files/${body.file!.id}/content`);
    const wanted = Buffer.concat([bytes, bytes]);
    expect(Buffer.from(await response.arrayBuffer()).equals(wanted)).toBe(true);
  });

  test('completed several times at once becomes one file', async () => {
    const own = (await tenantWithKey(worker, 'at-once')).key;
    const id = await create(2, own);
    const ids = [(await part(id, 'a', own)).body.id, (await part(id, 'b', own)).body.id];
    const all = await Promise.all([1, 2, 3, 4].map(() => call(`/${id}/complete`, { part_ids: ids }, own)));
    const headers = { authorization: `Bearer ${own}` };
    const list = await (await worker.request('/v1/files', { headers })).json();
    const files = (list as { data: { id: string }[] }).data.map((file) => file.id);
    expect(files).toHaveLength(1);
    for (const { status, body } of all) {
      if (status === 200) expect(body.file?.id).toBe(files[0]);
      else expect([status, body.error.code]).toEqual([409, 'conflict']);
    }
    expect(all.some(({ status }) => status === 200)).toBe(true);
  });

  test.each([
    ['a missing part', 2, 'part_ids'],
    ['a part too many', 4, 'part_ids'],
  ])('with %s is refused, and can still be completed', async (_, wrong, param) => {
    const id = await create(3);
    const ids = [await partId(id, 'a'), await partId(id, 'b'), await partId(id, 'c'), await partId(id, 'd')];
    const refused = await call(`/${id}/complete`, { part_ids: ids.slice(0, wrong) });
    expect([refused.status, refused.body.error.param]).toEqual([400, param]);
    const { body } = await call(`/${id}/complete`, { part_ids: ids.slice(0, 3) });
    expect(await contentOf(body.file!.id)).toBe('abc');
  });

  test('with another MD5 leaves no file', async () => {
    const own = (await tenantWithKey(worker, 'md5')).key;
    const id = await create(1, own);
    const ids = [(await part(id, 'a', own)).body.id];
    const refused = await call(`/${id}/complete`, { part_ids: ids, md5: '0'.repeat(32) }, own);
    expect([refused.status, refused.body.error.param]).toEqual([400, 'md5']);
    const list = await worker.request('/v1/files', { headers: { authorization: `Bearer ${own}` } });
    expect(await list.json()).toMatchObject({ data: [] });
  });

  test('with a part that cannot exist is refused', async () => {
    const id = await create(1);
    for (const wrong of ['x'.repeat(2_000), '../upload'])
      expect((await call(`/${id}/complete`, { part_ids: [wrong] })).body.error.param).toBe('part_ids[0]');
    expect((await call(`/${id}/complete`, { part_ids: ['\ud83d'] })).body.error.param).toBe('part_ids');
  });

  test('that was cancelled takes no parts and makes no file', async () => {
    const id = await create(1);
    const ids = [await partId(id, 'a')];
    for (let time = 0; time < 2; time += 1) {
      expect((await call(`/${id}/cancel`)).body).toMatchObject({ id, status: 'cancelled' });
    }
    for (const refused of [await part(id, 'a'), await call(`/${id}/complete`, { part_ids: ids })]) {
      expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict']);
    }
  });

  test('takes at most twice its size', async () => {
    const id = await create(2);
    for (const content of ['ab', 'ab']) expect((await part(id, content)).status).toBe(200);
    const { status, body } = await part(id, 'a');
    expect([status, body.error.code, body.error.param]).toEqual([413, 'request_too_large', 'data']);
  });

  test('of another tenant does not exist', async () => {
    const id = await create(1);
    const stranger = (await tenantWithKey(worker, 'uploads-stranger')).key;
    for (const [path, body] of [
      ['cancel', {}],
      ['complete', { part_ids: ['x'] }],
    ] as const) {
      expect((await call(`/${id}/${path}`, body, stranger)).status).toBe(404);
      expect((await call(`/..%2Fuploads%2F${id}/${path}`, body, stranger)).status).toBe(404);
    }
    expect((await part(id, 'a', stranger)).status).toBe(404);
  });

  test('is one of at most 20 pending ones', async () => {
    const own = (await tenantWithKey(worker, 'uploads-pending')).key;
    const ids: string[] = [];
    for (let count = 0; count < 20; count += 1) ids.push(await create(1, own));
    const asked = { filename: 'in.jsonl', purpose: 'batch', bytes: 1 };
    expect((await call('', asked, own)).status).toBe(429);
    await call(`/${ids[0]}/cancel`, {}, own);
    expect((await call('', asked, own)).status).toBe(200);
  });

  test.each([
    [{ filename: '../a' }, 'filename'],
    [{ bytes: 200 * 1024 * 1024 + 1 }, 'bytes'],
    [{ bytes: -1 }, 'bytes'],
    [{ bytes: 0.5 }, 'bytes'],
    [{ purpose: 'fine-tune' }, 'purpose'],
    [{ expires_after: { anchor: 'created_at', seconds: 3_600 } }, 'expires_after'],
  ])('created with %j is refused', async (wrong, param) => {
    const asked = { filename: 'in.jsonl', purpose: 'batch', bytes: 1, ...wrong };
    const { status, body } = await call('', asked);
    expect([status, body.error.param]).toEqual([400, param]);
  });
});
