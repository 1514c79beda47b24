import { beforeEach, describe, expect, test } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { eventually } from '../support/eventually.ts';
import { ACTIVITY, MODEL, startFakeOrigin } from '../support/fake-origin.ts';
import { acceptedFor, doneFor, tokenEvent } from '../support/scripts.ts';
import { asNewForEach, workerForTests } from '../support/worker-for-tests.ts';
import { WorkerdLog } from '../support/workerd-log.ts';
import { ADMIN_KEY, ADMIN_KEY_SHA256, admin } from './admin-client.ts';

const log = new WorkerdLog(/"event":"(upstream_invalid|upstreams_unknown)"/);
const { worker } = workerForTests(
  { ADMIN_KEY_SHA256, MODELS_TTL_MS: '5000' },
  { entry: 'test/worker/support/entries/lagging-copy.ts', log },
);
const second = forAllTests(startFakeOrigin);
asNewForEach(second);

type Headers = Readonly<Record<string, string>>;

/** Each test has isolates of its own. Its clock stands, from a later time in each test. */
let start = Date.now();
let count = 0;
beforeEach(async () => {
  start += 3_600_000;
  count += 1;
  second.models = [{ ...MODEL, id: 'org/second' }];
  await worker.database.prepare('DELETE FROM upstreams').run();
});

const at = (ms: number, isolate: string): Headers => ({
  'x-now': String(start + ms),
  'x-isolate': `${isolate}${count}`,
  'x-copy': '1',
});

const complete = async (model: string, headers: Headers) =>
  (await worker.post({ model, prompt: 'Hi', max_tokens: 4 }, { headers })).status;

interface Listed {
  readonly id: string;
  readonly source: string;
  readonly fault: string | null;
  readonly config: Readonly<Record<string, unknown>>;
}

async function call(method: string, path: string, headers: Headers, body?: unknown) {
  const response = await worker.request(`/admin/v1/upstreams${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Listed & {
    readonly data: readonly Listed[];
    readonly error: { readonly message: string; readonly param: string | null; readonly code: string };
  };
  return { status: response.status, body: answer };
}

const set = (name: string, headers: Headers, body: object = { kind: 'origin', url: second.url }) =>
  call('PUT', `/${name}`, headers, body);

const listed = async (headers: Headers) => (await call('GET', '', headers)).body.data;

describe('the list of upstreams', () => {
  test('begins as that of the variable, and a change is known to every isolate within a minute', async () => {
    expect(await listed(at(0, 'a'))).toMatchObject([{ id: 'origin', source: 'variable', fault: null }]);
    expect(await complete('org/tiny', at(0, 'b'))).toBe(200);
    expect(await complete('org/second', at(0, 'b'))).toBe(404);
    expect((await set('second', at(1, 'a'))).status).toBe(200);
    expect(await complete('org/second', at(1, 'a'))).toBe(200);
    expect(await listed(at(1, 'a'))).toMatchObject([
      { id: 'origin', source: 'database' },
      { id: 'second', source: 'database', config: { url: second.url, secret: 'ORIGIN_SECRET' } },
    ]);
    expect(await complete('org/second', at(29_999, 'b'))).toBe(404);
    expect(await complete('org/second', at(60_000, 'b'))).toBe(200);
    expect(await complete('org/tiny', at(60_000, 'b'))).toBe(200);

    expect((await call('DELETE', '/origin', at(60_001, 'a'))).status).toBe(200);
    expect(await complete('org/tiny', at(60_001, 'a'))).toBe(404);
    expect(await complete('org/tiny', at(120_000, 'b'))).toBe(404);
    expect(await complete('org/second', at(120_000, 'b'))).toBe(200);
  });

  test('shows what origins do and did under the public names of their models, and which do not answer', async () => {
    await set('second', at(0, 'a'), { kind: 'origin', url: 'http://127.0.0.1:9' });
    const models = [{ id: 'public', upstreamId: 'org/tiny' }];
    await set('third', at(0, 'a'), { kind: 'origin', url: second.url, models });
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, ...at(1, 'a') };
    const answer = await worker.request('/admin/v1/activity', { headers });
    expect(((await answer.json()) as { data: unknown }).data).toMatchObject([
      { id: 'origin', fault: null, ...ACTIVITY },
      { id: 'second', fault: expect.stringContaining('could not be reached'), models: [] },
      { id: 'third', fault: null, models: [{ ...ACTIVITY.models[0], id: 'public' }] },
    ]);
  });

  test('shows the breaker of an upstream that fails, where it was seen', async () => {
    await set('second', at(0, 'a'));
    second.script = (_, wire) => wire.refuse(500, { error: { message: 'x', code: 'internal_error' } });
    for (let count = 0; count < 5; count += 1) await complete('org/second', at(1, 'a'));
    const seen = async (headers: Headers) =>
      (await listed(headers)).find(({ id }) => id === 'second') as unknown;
    expect(await seen(at(1, 'a'))).toMatchObject({ breaker: 'open', failures: 5, running: 0 });
    expect(await seen(at(1_001, 'a'))).toMatchObject({ breaker: 'half-open' });
    expect(await seen(at(1, 'b'))).toMatchObject({ breaker: 'closed', failures: 0 });
  });

  test('is read in the background, so that a busy isolate waits for no list', async () => {
    await complete('org/tiny', at(0, 'b'));
    await set('second', at(1, 'a'));
    expect(await complete('org/second', at(30_000, 'b'))).toBe(404);
    await eventually(
      () => complete('org/second', at(30_001, 'b')),
      (status) => status === 200,
    );
  });

  test('an upstream that is removed or moved gets no new requests, and ends those that run', async () => {
    await set('second', at(0, 'a'));
    const held = Promise.withResolvers<void>();
    second.script = async (request, wire) => {
      wire.send(...acceptedFor(request), tokenEvent(0, ' one'));
      await held.promise;
      wire.send(doneFor(request, 1));
      wire.end();
    };
    const running = await worker.post(
      { model: 'org/second', prompt: 'Hi', max_tokens: 4, stream: true },
      { headers: at(0, 'a') },
    );
    await call('DELETE', '/second', at(1, 'a'));
    expect(await complete('org/second', at(1, 'a'))).toBe(404);
    held.resolve();
    expect(await running.text()).toMatch(/ one[\s\S]*data: \[DONE\]/);

    await set('second', at(2, 'a'));
    await set('second', at(3, 'a'), { kind: 'origin', url: 'http://127.0.0.1:9' });
    expect(await complete('org/second', at(3, 'a'))).toBe(502);
  });

  test('stays as it was last known while the database is away; a new isolate takes that of the variable', async () => {
    const away = (ms: number, isolate: string) => ({ ...at(ms, isolate), 'x-away': 'FROM upstreams' });
    await set('second', at(0, 'a'));
    expect(await complete('org/second', at(0, 'b'))).toBe(200);
    const before = log.lines.length;
    expect(await complete('org/second', away(3_000_000, 'b'))).toBe(200);
    expect(await complete('org/tiny', away(3_000_000, 'c'))).toBe(200);
    expect(await complete('org/second', away(3_000_000, 'c'))).toBe(404);
    expect(await complete('org/second', at(3_005_000, 'c'))).toBe(200);
    await expect.poll(() => log.lines.length - before).toBe(2);
    expect(log.lines.at(-1)).toContain('"event":"upstreams_unknown"');
  });

  test('an upstream of a newer release is refused by name, and the others serve', async () => {
    await set('second', at(0, 'a'));
    const later = JSON.stringify({ kind: 'grpc', url: 'http://127.0.0.1:9' });
    await worker.database
      .prepare("INSERT INTO upstreams (name, config) VALUES ('later', ?)")
      .bind(later)
      .run();
    const nameless = JSON.stringify({ kind: 'openai', url: 'http://127.0.0.1:9', apiKey: 'GONE_KEY' });
    await worker.database
      .prepare("INSERT INTO upstreams (name, config) VALUES ('torn', '{'), ('keyless', ?)")
      .bind(nameless.replace('}', ',"models":[{"id":"m","contextLength":9}]}'))
      .run();
    const before = log.lines.length;
    expect(await complete('org/tiny', at(1, 'd'))).toBe(200);
    expect(await complete('org/second', at(1, 'd'))).toBe(200);
    await expect.poll(() => log.lines.length - before).toBe(3);
    expect(log.lines.slice(before).join('\n')).toMatch(/"upstream":"later"[\s\S]*"upstream":"torn"/);
    const faults = (await listed(at(1, 'd'))).map(({ id, fault }) => [id, fault]);
    expect(faults).toEqual([
      ['keyless', 'The secret GONE_KEY is not set.'],
      ['later', expect.stringContaining('kind')],
      ['origin', null],
      ['second', null],
      ['torn', expect.stringContaining('JSON')],
    ]);
    expect((await call('DELETE', '/second', at(1, 'd'))).status).toBe(200);
    expect((await call('DELETE', '/origin', at(1, 'd'))).body.error.code).toBe('conflict');
    await set('second', at(1, 'd'));
    expect(await complete('org/second', at(1, 'd'))).toBe(200);
    // An isolate that can use none of them goes on with what it knows.
    await worker.database.prepare("DELETE FROM upstreams WHERE name IN ('origin', 'second')").run();
    expect(await complete('org/second', at(60_001, 'd'))).toBe(200);
    expect(await complete('org/tiny', at(60_001, 'e'))).toBe(200);
  });

  test('refuses an upstream that cannot work, and names what is wrong', async () => {
    const here = at(0, 'a');
    const url = second.url;
    const models = [{ id: 'm', contextLength: 9 }];
    const cases: [string, object, string][] = [
      ['x', { kind: 'origin', url, conectMs: 1 }, 'conectMs'],
      ['x', { kind: 'grpc', url }, 'kind'],
      ['x', { kind: 'origin', url: 'nowhere' }, 'url'],
      ['x', { kind: 'origin', url, secret: 'FAR_SECRET' }, 'The secret FAR_SECRET is not set'],
      ['x', { kind: 'origin', url, binding: 'TUNNEL' }, 'no binding TUNNEL'],
      ['x', { kind: 'origin', url, secret: 'ADMIN_KEY_SHA256' }, "ADMIN_KEY_SHA256 is the Worker's own"],
      ['x', { kind: 'openai', url, models, apiKey: 'ORIGIN_SECRET' }, "ORIGIN_SECRET is the Worker's own"],
      ['x', { kind: 'openai', url, models, apiKey: 'WEBHOOK_SECRET' }, "WEBHOOK_SECRET is the Worker's own"],
      ['a%20b', { kind: 'origin', url }, "Invalid name 'a b'"],
    ];
    for (const [name, body, message] of cases) {
      const answer = await set(name, here, body);
      expect([answer.status, answer.body.error?.message], message).toEqual([
        400,
        expect.stringContaining(message),
      ]);
    }
    expect((await call('DELETE', '/nobody', here)).body.error.code).toBe('not_found');
    expect((await call('DELETE', '/origin', here)).body.error.code).toBe('conflict');
    expect(await listed(here)).toMatchObject([{ source: 'variable' }]);
  });

  test('never loses its last upstream to parallel removals', async () => {
    for (const name of ['second', 'third']) await set(name, at(0, 'a'));
    const removals = ['origin', 'second', 'third'].map((name) => call('DELETE', `/${name}`, at(1, 'a')));
    const statuses = (await Promise.all(removals)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 200, 409]);
    expect(await listed(at(2, 'a'))).toHaveLength(1);
  });

  test('only owners change it, and each change is in the audit log', async () => {
    const terms = { tenant: 'operator', name: 'reader', scopes: ['admin'], role: 'read-only' };
    const { body } = await admin(worker, 'POST', '/keys', terms);
    const reader = { ...at(0, 'a'), authorization: `Bearer ${body.key}` };
    expect((await call('GET', '', reader)).status).toBe(200);
    expect((await set('second', reader)).status).toBe(403);
    await set('second', at(0, 'a'));
    await call('DELETE', '/second', at(0, 'a'));
    await call('DELETE', '/second', at(0, 'a'));
    const audit = await admin(worker, 'GET', `/audit?to=2040-01-01&from=2026-01-01&limit=2`);
    expect(audit.body.data).toMatchObject([
      { action: 'removeUpstream', target: 'second', tenant: null },
      { action: 'setUpstream', target: 'second', changes: { url: second.url } },
    ]);
  });
});
