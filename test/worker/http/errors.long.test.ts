import { beforeAll, describe, expect, test } from 'vitest';
import { errorResponseBody } from '../../../shared/completion-response.ts';
import { ADMIN_KEY_SHA256 } from '../admin/admin-client.ts';
import { documentedPath, documentedPaths, undocumented } from '../support/api-document.ts';
import { startFakeOrigin } from '../support/fake-origin.ts';
import { startWorker } from '../support/worker.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { WorkerdLog } from '../support/workerd-log.ts';
import type { ErrorCase } from './errors/case.ts';
import { STATUS_400 } from './errors/status-400.ts';
import { STATUS_401 } from './errors/status-401.ts';
import { STATUS_403 } from './errors/status-403.ts';
import { STATUS_404 } from './errors/status-404.ts';
import { STATUS_405 } from './errors/status-405.ts';
import { STATUS_408 } from './errors/status-408.ts';
import { STATUS_413 } from './errors/status-413.ts';
import { STATUS_415 } from './errors/status-415.ts';
import { STATUS_429 } from './errors/status-429.ts';
import { STATUS_500 } from './errors/status-500.ts';
import { STATUS_502 } from './errors/status-502.ts';
import { STATUS_503 } from './errors/status-503.ts';
import { STATUS_504 } from './errors/status-504.ts';

const log = new WorkerdLog(/"event":"bug"/);
const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256 }, { log });
let paths: Awaited<ReturnType<typeof documentedPaths>>;
beforeAll(async () => {
  paths = await documentedPaths(worker);
});

const BY_STATUS: readonly (readonly [number, readonly ErrorCase[]])[] = [
  [400, STATUS_400],
  [401, STATUS_401],
  [403, STATUS_403],
  [404, STATUS_404],
  [405, STATUS_405],
  [408, STATUS_408],
  [413, STATUS_413],
  [415, STATUS_415],
  [429, STATUS_429],
  [500, STATUS_500],
  [502, STATUS_502],
  [503, STATUS_503],
  [504, STATUS_504],
];

describe.each(BY_STATUS)('status %i', (status, cases) => {
  test.each(cases.map((row) => [row.name, row] as const))('%s', async (_, row) => {
    const response = await row.send(worker, origin);
    const text = await response.text();
    expect(response.status, text).toBe(status);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('x-request-id')).toBeTruthy();
    const { error } = errorResponseBody.parse(JSON.parse(text));
    expect(Object.keys(JSON.parse(text).error).toSorted()).toEqual(['code', 'message', 'param', 'type']);
    expect(error).toMatchObject({ type: row.type, code: row.code, param: row.param });
    expect(error.message).toMatch(row.message);
    for (const [name, value] of Object.entries(row.headers ?? {})) {
      if (value instanceof RegExp) expect(response.headers.get(name)).toMatch(value);
      else expect(response.headers.get(name)).toBe(value);
    }
    // Responses to hand-written requests have no URL. All of those are completions.
    const path = response.url === '' ? '/v1/completions' : documentedPath(paths, response.url);
    if (path === null || status === 405) return;
    const [operation] = Object.values(paths[path] ?? {});
    expect(undocumented(operation?.responses ?? {}, response)).toEqual([]);
    expect(operation?.responses[status]?.description.split(', ')).toContain(row.code);
  });
});

test('a bug is logged with the id of its request', async () => {
  const response = await STATUS_500[0]!.send(worker, origin);
  const id = `"requestId":"${response.headers.get('x-request-id')}"`;
  await expect.poll(() => log.lines.filter((line) => line.includes(id)).length).toBe(1);
});

test('documents no status that completions cannot have', () => {
  const { responses } = paths['/v1/completions']!.post!;
  // 409 belongs to idempotency and is tested there. 405 belongs to the router and to no operation.
  const expected = [200, 409, ...BY_STATUS.map(([status]) => status).filter((status) => status !== 405)];
  expect(Object.keys(responses).map(Number).toSorted()).toEqual(expected.toSorted());
});

describe('reports the first of several faults in this order', () => {
  const wrong = { method: 'DELETE', path: '/v1/completions' };
  const text = { 'content-type': 'text/plain' };
  const huge = 'x'.repeat(2 * 1_024 * 1_024 + 1);
  const post = (body: unknown, headers: Record<string, string> = {}) => worker.post(body, { headers });
  const good = { model: 'default', prompt: 'Hi' };
  const noKey = { authorization: 'Bearer wrong' };

  test.each<[string, () => Promise<Response>]>([
    ['method_not_supported', () => worker.request(wrong.path, { method: wrong.method, headers: noKey })],
    ['invalid_api_key', () => post(huge, { ...noKey, ...text })],
    ['unsupported_media_type', () => post(huge, text)],
    ['request_too_large', () => post(`{${huge}`)],
    ['invalid_json', () => post('{"model":"nope"')],
    ['model_not_found', () => post({ model: 'nope', n: 'x' })],
    ['invalid_type', () => post({ ...good, n: 'x', best_of: 2, stream: true })],
    [
      'conflicting_parameters',
      () => post({ ...good, best_of: 2, stream: true, suffix: 'b', images: ['data:,'] }),
    ],
  ])('%s', async (code, send) => {
    const { error } = errorResponseBody.parse(await (await send()).json());
    expect(error.code).toBe(code);
  });

  test('checks capabilities last, and sends nothing to the origin before', async () => {
    origin.models = origin.models.map((model) => ({ ...model, infill: false }));
    const { error } = errorResponseBody.parse(await (await post({ ...good, suffix: 'b' })).json());
    expect(error).toMatchObject({ code: 'unsupported_parameter', param: 'suffix' });
    expect(origin.requests).toEqual([]);
  });
});

describe('an origin that starts and stops', () => {
  test('returns 503 without a model, 200 with a model, and 502 with retry-after without an origin', async () => {
    const other = await startFakeOrigin();
    const lonely = await startWorker(other);
    const send = () => lonely.post({ model: 'default', prompt: 'Hi' });
    try {
      other.models = [];
      const loading = await send();
      expect([loading.status, loading.headers.get('retry-after')]).toEqual([503, '5']);
      expect(errorResponseBody.parse(await loading.json()).error.code).toBe('model_loading');
      other.reset();
      expect((await send()).status).toBe(200);
      await other.stop();
      const gone = await send();
      expect([gone.status, gone.headers.get('retry-after')]).toEqual([502, '1']);
      expect(errorResponseBody.parse(await gone.json()).error.code).toBe('upstream_error');
    } finally {
      await lonely.stop();
    }
  });
});
