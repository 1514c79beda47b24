import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { fileObject } from '../../../shared/batch.ts';
import { tenantWithKey } from '../admin/admin-client.ts';
import { BatchClient } from '../batches/batch-client.ts';
import { KEY } from '../support/worker.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker } = sharedWorker();
const client = new BatchClient(worker);

/** Bytes with every value, and with everything that could be taken for a boundary. */
const bytesOf = (length: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length }, (_, index) => (index % 7 === 0 ? 0x0d : index % 11 === 0 ? 0x2d : index));

describe('a file', () => {
  test('is described, listed, downloaded and deleted as OpenAI documents it', async () => {
    const file = fileObject.parse((await client.send('{"a":1}\n', 'naïve "name".jsonl')).body);
    expect(file).toMatchObject({ bytes: 8, filename: 'naïve "name".jsonl', purpose: 'batch' });
    expect((await client.call('GET', `/v1/files/${file.id}`)).body).toEqual(file);
    expect(await client.content(file.id)).toBe('{"a":1}\n');
    expect((await client.call('GET', '/v1/files?purpose=batch')).body.data).toContainEqual(file);
    expect((await client.call('GET', '/v1/files?purpose=batch_output')).body.data).toEqual([]);
    const { body } = await client.call('DELETE', `/v1/files/${file.id}`);
    expect(body).toEqual({ id: file.id, object: 'file', deleted: true });
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/content'],
      ['DELETE', ''],
    ] as const) {
      const gone = await client.call(method, `/v1/files/${file.id}${path}`);
      expect([gone.status, gone.body.error.code]).toEqual([404, 'not_found']);
    }
  });

  test.each([0, 1, 5 * 1024 * 1024, 11_000_003])('of %i bytes arrives unchanged', async (length) => {
    const bytes = bytesOf(length);
    const { id, bytes: size } = await client.upload(bytes);
    expect(size).toBe(length);
    const response = await worker.request(`/v1/files/${id}/content`);
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.from(bytes))).toBe(true);
  });

  test('is listed page by page, from new to old or from old to new', async () => {
    const own = new BatchClient(worker, (await tenantWithKey(worker, 'files-pages')).key);
    const ids: string[] = [];
    for (const content of ['1', '2', '3']) {
      ids.unshift((await own.upload(content)).id);
      // Ids of the same millisecond have a random order.
      await setTimeout(2);
    }
    const list = async (query: string) => (await own.call('GET', `/v1/files?${query}`)).body;
    expect((await list('')).data.map(({ id }) => id)).toEqual(ids);
    expect((await list('order=asc')).data.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(await list('limit=2')).toMatchObject({ has_more: true, data: [{ id: ids[0] }, { id: ids[1] }] });
    expect(await list(`limit=2&after=${ids[1]}`)).toMatchObject({ has_more: false, data: [{ id: ids[2] }] });
    // A client may delete what it has listed before it asks for the next page.
    await own.call('DELETE', `/v1/files/${ids[1]}`);
    for (const [order, next] of [
      ['desc', ids[2]],
      ['asc', ids[0]],
    ])
      expect((await list(`order=${order}&after=${ids[1]}`)).data.map(({ id }) => id)).toEqual([next]);
  });

  test.each(['x'.repeat(2_000), '\ud83d', '\u0000', '文'.repeat(500)])(
    'does not exist with the id %j',
    async (id) => {
      const path = encodeURIComponent(id.toWellFormed());
      for (const [method, at] of [
        ['GET', `/v1/files/${path}`],
        ['GET', `/v1/files/${path}/content`],
        ['DELETE', `/v1/files/${path}`],
        ['GET', `/v1/batches/${path}`],
        ['POST', `/v1/batches/${path}/cancel`],
        ['POST', `/v1/uploads/${path}/cancel`],
      ] as const)
        expect((await client.call(method, at)).status, `${method} ${at.slice(0, 40)}`).toBe(404);
      // A body refuses half of a surrogate pair in any field.
      expect((await client.create(id)).status).toBe(id.isWellFormed() ? 404 : 400);
    },
  );

  test('of another tenant does not exist', async () => {
    const { id } = await client.upload('x');
    const stranger = new BatchClient(worker, (await tenantWithKey(worker, 'files-stranger')).key);
    for (const path of [id, `..%2F..%2Fdevelopment%2Ffiles%2F${id}`, `%2e%2e%2f${id}`]) {
      expect((await stranger.call('GET', `/v1/files/${path}`)).status).toBe(404);
      expect((await stranger.call('DELETE', `/v1/files/${path}`)).status).toBe(404);
    }
    expect((await stranger.call('GET', '/v1/files')).body.data).toEqual([]);
    expect((await client.call('GET', `/v1/files/${id}`)).status).toBe(200);
  });
});

describe('an upload is refused', () => {
  test('above 200 MiB, while it arrives', async () => {
    const { status, body } = await client.send(new Uint8Array(200 * 1024 * 1024 + 1));
    expect([status, body.error.code, body.error.param]).toEqual([413, 'request_too_large', 'file']);
  });

  test.each(['../secret', 'a/b', 'a\\b', '..', '.', '', 'a\u0001b', 'x'.repeat(256)])(
    'with the file name %j',
    async (name) => {
      const { status, body } = await client.send('x', name);
      expect([status, body.error.code, body.error.param]).toEqual([400, 'invalid_value', 'filename']);
    },
  );

  test.each([
    [{}, 'missing_required_parameter', 'purpose'],
    [{ purpose: 'fine-tune' }, 'invalid_value', 'purpose'],
    // openai-python and openai-node send the object as such fields.
    [
      { purpose: 'batch', 'expires_after[seconds]': '3600' },
      'unsupported_parameter',
      'expires_after[seconds]',
    ],
  ])('with the fields %j, and leaves no file', async (fields, code, param) => {
    const own = new BatchClient(worker, (await tenantWithKey(worker, `purpose-${code.length}`)).key);
    const { status, body } = await own.send('x', 'a.jsonl', fields as Record<string, string>);
    expect([status, body.error.code, body.error.param]).toEqual([400, code, param]);
    expect((await own.call('GET', '/v1/files')).body.data).toEqual([]);
  });

  test.each([
    ['application/json', '{}', 415, 'unsupported_media_type'],
    ['multipart/form-data', '', 415, 'unsupported_media_type'],
    ['multipart/form-data; boundary=b', '', 400, 'invalid_value'],
    ['multipart/form-data; boundary=b', '--b--\r\n', 400, 'missing_required_parameter'],
    ['multipart/form-data; boundary=b', '--bxx', 400, 'invalid_value'],
    ['multipart/form-data; boundary=b', '--b\r\n\r\n\r\nx\r\n--b--', 400, 'invalid_value'],
    [
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n',
      400,
      'invalid_value',
    ],
    [
      'multipart/form-data; boundary=b',
      `--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n${'x'.repeat(2_000)}\r\n--b--`,
      400,
      'invalid_value',
    ],
  ])('as %s with the body %j', async (type, body, status, code) => {
    const init = { method: 'POST', headers: { 'content-type': type }, body };
    const response = await worker.request('/v1/files', init);
    const { error } = (await response.json()) as { error: { code: string } };
    expect([response.status, error.code]).toEqual([status, code]);
  });

  test('to a slow client without breaking its connection', async () => {
    const { hostname, port } = new URL(worker.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    const host = `Host: ${hostname}\r\nAuthorization: Bearer ${KEY}\r\n`;
    const head = '--b\r\nContent-Disposition: form-data; name="file"; filename=".."\r\n\r\n';
    const rest = `${'x'.repeat(300_000)}\r\n--b--\r\n`;
    const length = head.length + rest.length;
    const type = 'Content-Type: multipart/form-data; boundary=b';
    socket.write(`POST /v1/files HTTP/1.1\r\n${host}${type}\r\nContent-Length: ${length}\r\n\r\n${head}`);
    await setTimeout(200);
    socket.write(rest);
    socket.write(`GET /v1/files HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    expect((await text(socket)).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400', 'HTTP/1.1 200']);
  });

  test('without a key', async () => {
    const init = { method: 'POST', headers: { authorization: 'Bearer nothing' }, body: new FormData() };
    expect((await worker.request('/v1/files', init)).status).toBe(401);
  });
});
