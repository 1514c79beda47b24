import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { CommandError, EXIT } from '../../../origin/terminal/program.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { ADMIN_KEY, ADMIN_KEY_SHA256, type AnswerBody, completion } from '../../worker/admin/admin-client.ts';
import { eventually } from '../../worker/support/eventually.ts';
import { workerForTests } from '../../worker/support/worker-for-tests.ts';
import { runCli } from './run-cli.ts';

const { worker } = workerForTests({ ADMIN_KEY_SHA256 });

/** Returns the output of `continuo …`. @throws CommandError with the line on stderr */
const admin = (...words: string[]): Promise<string> => adminAt(worker.url, words);

async function adminAt(url: string, words: readonly string[], ask: typeof fetch = fetch): Promise<string> {
  const environment = { CONTINUO_URL: url, CONTINUO_ADMIN_KEY: ADMIN_KEY };
  const { code, stdout, stderr } = await runCli(words, { environment, fetch: ask });
  if (code !== 0) throw new CommandError(stderr.trimEnd().replace(/^continuo: /, ''), code);
  return stdout;
}

const adminJson = async <T = AnswerBody>(...words: string[]): Promise<T> =>
  JSON.parse(await admin('--json', ...words)) as T;

test('sets up a tenant and counts a completion, with commands only', async () => {
  await admin('plans', 'create', '--id', 'small', '--name', 'Small', '--limit', 'requests_per_minute=30');
  const tenant = await adminJson('tenants', 'create', '--id', 'acme', '--name', 'Acme', '--plan', 'small');
  expect(tenant).toMatchObject({ id: 'acme', plan: 'small', suspended: false });
  const key = await adminJson('keys', 'create', '--tenant', 'acme', '--name', 'ci', '--models', 'org/tiny');
  const answer = await completion(worker, key.key);
  expect([answer.status, answer.headers.get('x-ratelimit-limit-requests')]).toEqual([200, '30']);
  const next = await adminJson('keys', 'rotate', key.id, '--overlap', '1h');
  expect(next.models).toEqual(['org/tiny']);
  expect((await adminJson('keys', 'revoke', next.id)).revoked_at).toEqual(expect.any(Number));
  expect((await completion(worker, next.key)).status).toBe(401);
  const [row] = await eventually(
    () => adminJson<unknown[]>('usage', '--tenant', 'acme', '--by', 'tenant,key'),
    (rows) => rows.length > 0,
  );
  expect(row).toMatchObject({ tenant: 'acme', key: key.id, requests: 1, completion_tokens: 4 });
});

test('sets prices and adds to a balance once per id, in whole micro-units', async () => {
  const words = ['--model', 'org/priced', '--prompt', '500000', '--completion', '1500000', '--batch', '500'];
  const price = await adminJson('prices', 'set', ...words);
  expect(price).toMatchObject({ cached_prompt_micros: 500_000, flex_permille: 1_000, batch_permille: 500 });
  const prices = await adminJson<unknown[]>('prices', 'list', '--model', 'org/priced');
  expect(prices).toEqual([price]);
  await admin('tenants', 'create', '--id', 'payer', '--name', 'Payer');
  const add = (micros: string) =>
    admin('credits', 'add', '--tenant', 'payer', '--id', 'p1', '--micros', micros, '--note', 'first');
  await add('70');
  await add('70');
  await expect(add('7.5')).rejects.toThrow(
    /'--micros <number>' argument '7.5' is invalid. Expected a whole number/,
  );
  const entries = await adminJson<{ id: string; micros: number }[]>('credits', 'list', '--tenant', 'payer');
  expect(entries.map(({ id, micros }) => [id, micros])).toEqual([
    ['opening', 0],
    ['p1', 70],
  ]);
});

test('adds, replaces and removes upstreams, with options or a file', async () => {
  const list = async () => {
    const upstreams = await adminJson<{ id: string; config: object }[]>('upstreams', 'list');
    return upstreams.map(({ id }) => id);
  };
  expect(await list()).toEqual(['origin']);
  const set = ['upstreams', 'set', 'spare', '--address', 'http://127.0.0.1:9'];
  expect(await adminJson(...set)).toMatchObject({ id: 'spare', fault: null, config: { kind: 'origin' } });
  const file = path.join(newDirectory(), 'spare.json');
  const vllm = {
    kind: 'openai',
    name: 'ignored',
    url: 'http://127.0.0.1:9/v1',
    models: [{ id: 'm', contextLength: 9 }],
  };
  writeFileSync(file, JSON.stringify(vllm));
  expect(await adminJson('upstreams', 'set', 'spare', '--file', file)).toMatchObject({
    id: 'spare',
    config: { kind: 'openai', url: 'http://127.0.0.1:9/v1' },
  });
  expect(await list()).toEqual(['origin', 'spare']);
  await admin('upstreams', 'remove', 'spare');
  expect(await list()).toEqual(['origin']);
  await expect(admin('upstreams', 'remove', 'origin')).rejects.toThrow(
    new CommandError("The upstream 'origin' is the only one that can be used. Set another one first."),
  );
  await expect(admin(...set, '--secret', 'NOT_SET')).rejects.toThrow('The secret NOT_SET is not set.');
  await expect(admin('upstreams', 'set', 'spare')).rejects.toThrow(
    new CommandError('Name the address with --address, or a file with --file.', EXIT.usage),
  );
  for (const text of ['{', '[1]', '"text"']) {
    writeFileSync(file, text);
    await expect(admin('upstreams', 'set', 'spare', '--file', file)).rejects.toThrow(`${file} is not`);
  }
  await expect(admin('upstreams', 'set', 'spare', '--file', `${file}.other`)).rejects.toThrow(
    /other cannot be read \(ENOENT/,
  );
});

test("sets and clears a tenant's defaults for the objects of schemas", async () => {
  const created = await adminJson('tenants', 'create', '--id', 'open', '--name', 'O', '--open-objects');
  expect(created).toMatchObject({ open_objects: true, any_key_order: false });
  const changed = await adminJson('tenants', 'update', 'open', '--any-key-order', '--no-open-objects');
  expect(changed).toMatchObject({ open_objects: false, any_key_order: true });
  expect(await adminJson('tenants', 'update', 'open', '--name', 'P')).toMatchObject({ any_key_order: true });
});

test('sets and clears whether a tenant waits for tokens', async () => {
  const created = await adminJson('tenants', 'create', '--id', 'waits', '--name', 'W');
  expect(created).toMatchObject({ wait_for_tokens: false });
  const update = (flag: string) => adminJson('tenants', 'update', 'waits', flag);
  expect(await update('--wait-for-tokens')).toMatchObject({ wait_for_tokens: true });
  expect(await update('--no-wait-for-tokens')).toMatchObject({ wait_for_tokens: false });
});

test('tables show the same fields as JSON, and never a key', async () => {
  const { key } = await adminJson(
    'keys',
    'create',
    '--tenant',
    'operator',
    '--name',
    'x',
    '--scopes',
    'admin',
  );
  const shown = async (...words: string[]) => {
    const environment = { CONTINUO_URL: worker.url, CONTINUO_ADMIN_KEY: ADMIN_KEY };
    return (await runCli(words, { environment, terminal: { hasColors: false } })).stdout;
  };
  const table = await shown('keys', 'list', '--tenant', 'operator');
  expect(table).toMatch(/│ id .*│ tenant .*│ name /);
  expect(table).toContain('operator');
  expect(table).not.toContain(key);
  expect(await shown('tenants', 'show', 'operator')).toMatch(/│ name\s+│ Operator/);
});

test('resumes a suspended tenant and removes a limit', async () => {
  await admin('tenants', 'create', '--id', 'pause', '--name', 'Pause', '--limit', 'max_tokens=5');
  expect((await adminJson('tenants', 'suspend', 'pause')).suspended).toBe(true);
  expect((await adminJson('tenants', 'resume', 'pause')).suspended).toBe(false);
  const changed = await adminJson('tenants', 'update', 'pause', '--limit', 'max_tokens=none');
  expect(changed.limits).toEqual({ max_tokens: null });
});

test('changes one limit without the others, and makes it follow the plan again', async () => {
  const limits = async (...change: string[]) => (await adminJson(...change)).limits;
  await admin('plans', 'create', '--id', 'kept', '--name', 'Kept', '--limit', 'tokens_per_day=500');
  expect(await limits('plans', 'update', 'kept', '--limit', 'max_tokens=9')).toEqual({
    tokens_per_day: 500,
    max_tokens: 9,
  });
  expect(await limits('plans', 'update', 'kept', '--name', 'Same')).toEqual({
    tokens_per_day: 500,
    max_tokens: 9,
  });
  const create = ['tenants', 'create', '--id', 'kept', '--name', 'Kept', '--limit', 'tokens_per_day=50'];
  await admin(...create, '--limit', 'max_tokens=none');
  const update = ['tenants', 'update', 'kept', '--limit'];
  const both = { tokens_per_day: 50, max_tokens: null, requests_per_minute: 7 };
  expect(await limits(...update, 'requests_per_minute=7')).toEqual(both);
  expect(await limits(...update, 'requests_per_minute=8', '--limit', 'max_tokens=plan')).toEqual({
    tokens_per_day: 50,
    requests_per_minute: 8,
  });
  await expect(admin(...update, 'max_tokens=0')).rejects.toThrow(/below minimum value/);
  await expect(admin('plans', 'update', 'kept', '--limit', 'max_tokens=plan')).rejects.toThrow(
    /expected an integer/,
  );
});

test("shows the server's error messages", async () => {
  await expect(admin('tenants', 'show', 'nobody')).rejects.toThrow(
    new CommandError("There is no tenant 'nobody'."),
  );
  await expect(admin('tenants', 'create', '--name', 'x', '--limit', 'nonsense')).rejects.toThrow(
    /name=number/,
  );
  await expect(admin('tenants', 'create', '--name', 'x', '--limit', 'max_tokens=0')).rejects.toThrow(
    new CommandError(
      "Invalid 'limits.max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    ),
  );
});

/** Returns the output of `continuo … --help` as one line. */
const helpOf = async (...words: string[]): Promise<string> =>
  (await admin(...words, '--help')).replaceAll(/\s+/g, ' ');

test('lists every limit in the help, and rejects unknown limits', async () => {
  const names =
    'requests_per_minute, tokens_per_minute, concurrent_requests, tokens_per_day, tokens_per_month, micros_per_day, micros_per_month, soft_micros_per_day, soft_micros_per_month, user_requests_per_minute, user_tokens_per_minute, user_tokens_per_day, user_tokens_per_month, user_micros_per_day, user_micros_per_month, user_concurrent_requests, max_tokens, max_sequences, max_logprob_bytes';
  for (const command of ['tenants create', 'tenants update', 'keys create', 'plans create', 'plans update']) {
    expect(await helpOf(...command.split(' '))).toContain(names);
  }
  const limits = names.split(', ').flatMap((name) => ['--limit', `${name}=7`]);
  await admin('tenants', 'create', '--id', 'limited', '--name', 'Limited', ...limits);
  await expect(admin('tenants', 'update', 'limited', '--limit', 'rpm=7')).rejects.toThrow(
    `There is no limit 'rpm'; names: ${names}.`,
  );
  expect(await helpOf('tenants', 'create')).toContain('openai, fireworks, llamacpp, mistralrs, vllm');
});

test('reports all missing options of a command together, and marks them in its help', async () => {
  const missing = await runCli(['keys', 'create', '--scopes', 'admin']);
  expect(missing).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/^continuo: missing required options: --tenant <id>, --name <name>\n/),
  });
  expect((await runCli(['tenants', 'create'])).stderr).toMatch(/missing required option: --name <name>/);
  const help = await helpOf('keys', 'create');
  expect(help).toContain('--tenant <id> tenant that holds the key (required)');
  expect(help).toContain('--name <name> name for people (required)');
});

test('rejects invalid addresses, ids and weights in one line', async () => {
  await expect(admin('--url', 'nonsense', 'tenants', 'list')).rejects.toThrow(
    new CommandError("'nonsense' is not an address such as https://api.example.com.", EXIT.usage),
  );
  await expect(adminAt('ftp://127.0.0.1', ['tenants', 'list'])).rejects.toThrow(CommandError);
  // These ids would lead to another path: the list, or its parent.
  for (const id of ['', '.', '..']) {
    await expect(admin('tenants', 'show', id)).rejects.toThrow(
      new CommandError(`'${id}' is not an id.`, EXIT.usage),
    );
  }
  for (const weight of ['0', '-1', 'x', 'Infinity']) {
    await expect(admin('tenants', 'create', '--name', 'x', '--weight', weight)).rejects.toThrow(/above 0/);
  }
});

test.each(['null', '"ok"', '<html>', '{}'])(
  'reports that a server answering %s is not Continuo',
  async (body) => {
    const ask = () => Promise.resolve(new Response(body));
    for (const words of [
      ['tenants', 'list'],
      ['usage'],
      ...(body === '{}' ? [] : [['tenants', 'show', 'x']]),
    ]) {
      await expect(adminAt('http://other.example:81/x', words, ask)).rejects.toThrow(
        new CommandError('http://other.example:81 is not a Continuo server.'),
      );
    }
  },
);

test('reads the expiry of a key as a date or a time, and rejects dates that do not exist', async () => {
  await admin('tenants', 'create', '--id', 'dated', '--name', 'Dated');
  const expiring = ['keys', 'create', '--tenant', 'dated', '--name', 'x', '--expires'];
  const expiry = async (when: string) => (await adminJson(...expiring, when)).expires_at;
  expect(await expiry('2030-01-31')).toBe(Date.UTC(2030, 0, 31) / 1000);
  expect(await expiry('2030-01-31T12:00:00+01:00')).toBe(Date.UTC(2030, 0, 31, 11) / 1000);
  for (const when of ['1', '2030-02-31', '2030-01-31T12:00', '2030-01-31 (noon)']) {
    await expect(admin(...expiring, when)).rejects.toThrow(/2030-01-31/);
  }
});
