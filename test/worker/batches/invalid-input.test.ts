import { describe, expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { BatchClient, type Fields, lineOf } from './batch-client.ts';

const { worker } = workerForTests({ ADMIN_KEY_SHA256 });
const client = new BatchClient(worker);

describe('an input file is refused with its first invalid line', () => {
  const good = lineOf('a');
  test.each<[string, string | Uint8Array<ArrayBuffer>, string, number]>([
    ['that is empty', '', 'empty_file', 1],
    ['of blank lines', '\n  \r\n\n', 'empty_file', 1],
    ['with a repeated custom_id', `${good}\n\n${lineOf('b')}\n${good}\n${good}\n`, 'duplicate_custom_id', 4],
    [
      'with an id repeated by an invalid line',
      `${good}\n${lineOf('a', {}, { method: 'GET' })}`,
      'duplicate_custom_id',
      2,
    ],
    [
      'that is not UTF-8',
      Uint8Array.from(Buffer.concat([Buffer.from(`${good}\n{"custom_id": "`), Buffer.from([0xff, 0xfe])])),
      'invalid_encoding',
      2,
    ],
    [
      'with too many lines',
      Array.from({ length: 50_001 }, (_, index) => `{"custom_id":"${index}"}`).join('\n'),
      'too_many_lines',
      50_001,
    ],
  ])('%s', async (_, content, code, line) => {
    const { id } = await client.upload(content);
    const { status, body } = await client.create(id);
    expect([status, body.error?.code, body.error?.param]).toEqual([400, code, 'input_file_id']);
    expect(body.error.message).toContain(`line ${line} `);
    // The refused batch can be seen as OpenAI shows it.
    const [batch] = (await client.call('GET', '/v1/batches?limit=1')).body.data;
    expect(batch).toMatchObject({ status: 'failed', input_file_id: id, errors: { data: [{ code, line }] } });
  });

  test('that is a result or does not exist', async () => {
    const { id } = await client.start(lineOf('a'));
    const { output_file_id: output } = await client.until(id, 'completed');
    expect((await client.create(output!)).body.error.param).toBe('input_file_id');
    expect((await client.create('file-none')).status).toBe(404);
    const stranger = new BatchClient(worker, (await tenantWithKey(worker, 'stranger')).key);
    expect((await stranger.create((await client.upload(lineOf('a'))).id)).status).toBe(404);
    expect((await stranger.call('GET', `/v1/batches/${id}`)).status).toBe(404);
    expect((await stranger.call('POST', `/v1/batches/${id}/cancel`)).status).toBe(404);
    expect((await stranger.call('GET', '/v1/batches')).body.data).toEqual([]);
  });
});

test.each<[Fields, string]>([
  [{ endpoint: '/v1/chat/completions' }, 'endpoint'],
  [{ completion_window: '1h' }, 'completion_window'],
  [{ input_file_id: 7 }, 'input_file_id'],
  [{ output_expires_after: { anchor: 'created_at', seconds: 3_600 } }, 'output_expires_after'],
  [{ metadata: { a: 1 } }, 'metadata.a'],
  [{ metadata: { a: 'x'.repeat(513) } }, 'metadata.a'],
  [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [index, ''])) }, 'metadata'],
])('refuses a batch with %j', async (fields, param) => {
  const { status, body } = await client.create('file-none', fields);
  expect([status, body.error.param]).toEqual([400, param]);
});

test('a line that cannot run goes to the error file with its number, and the others run', async () => {
  const lines: [content: string, code: string][] = [
    ['{"custom_id": "broken"', 'invalid_json'],
    ['[]', 'invalid_type'],
    [lineOf('', {}), 'invalid_value'],
    [lineOf('💡'.repeat(513)), 'invalid_value'],
    [lineOf('x').replace('"x"', '"\\ud83d"'), 'invalid_value'],
    [lineOf('x').replace('"x"', '"\\ud83e"'), 'invalid_value'],
    [lineOf('get', {}, { method: 'GET' }), 'invalid_value'],
    [lineOf('url', {}, { url: '/v1/score' }), 'invalid_value'],
    [lineOf('body', {}, { body: 'text' }), 'invalid_type'],
    [lineOf('stream', { stream: true }), 'invalid_value'],
    [lineOf('long', { prompt: 'x'.repeat(2 * 1024 * 1024) }), 'request_too_large'],
    [lineOf('deep').replace('"Hi"', '['.repeat(200_000) + ']'.repeat(200_000)), 'invalid_value'],
    [lineOf('model', { model: 'none' }), 'model_not_found'],
    [lineOf('field', { temperature: -1 }), 'decimal_below_min_value'],
    [lineOf('stored', {}, { url: '/v1/completions' }), ''],
  ];
  const { id } = await client.start(`${lines.map(([content]) => content).join('\r\n')}\r\n`);
  const batch = await client.until(id, 'completed');
  expect(batch.request_counts).toEqual({ total: 15, completed: 1, failed: 14 });
  const errors = await client.records(batch.error_file_id);
  const codeOf = ({ error, response }: (typeof errors)[number]) =>
    error?.code ?? (response!.body.error as { code: string }).code;
  expect(errors.map((record) => [record.line, codeOf(record)])).toEqual(
    lines.slice(0, -1).map(([, code], index) => [index + 1, code]),
  );
  for (const { error, line } of errors) if (error) expect(error.message).toContain(`Line ${line}: `);
  expect((await client.records(batch.output_file_id)).map((record) => record.custom_id)).toEqual(['stored']);
});

test('lines with a byte order mark, of CRLF and LF, without an end, and of long characters run', async () => {
  const id = '💡'.repeat(512);
  const lines = [lineOf('a'), lineOf(id, { prompt: '💡'.repeat(20_000) }), '', lineOf('c')];
  const batch = await client.start(`\ufeff${lines[0]}\r\n${lines.slice(1).join('\n')}`);
  const { output_file_id: output } = await client.until(batch.id, 'completed');
  expect((await client.records(output)).map((record) => record.custom_id)).toEqual(['a', id, 'c']);
});

test('integers that no double holds reach the request', async () => {
  const { id } = await client.start(
    lineOf('a').replace('"max_tokens"', '"seed":-9223372036854775807,"max_tokens"'),
  );
  const batch = await client.until(id, 'completed');
  expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 });
});
