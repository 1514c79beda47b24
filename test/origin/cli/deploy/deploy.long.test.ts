import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { type DeployOptions, deploy } from '../../../../origin/cli/deploy/deploy.ts';
import { wranglerIn } from '../../../../origin/cli/deploy/wrangler.ts';
import { hostSecret } from '../../../../origin/cli/start/host-secrets.ts';
import { readEnvironment } from '../../../../origin/cli/worker-configuration.ts';
import { Terminal } from '../../../../origin/terminal/terminal.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { workerForTests } from '../../../worker/support/worker-for-tests.ts';

const ROOT = path.resolve(import.meta.dirname, '../../../..');
const WRANGLER_TOML = readFileSync(path.join(ROOT, 'wrangler.toml'), 'utf8');
const ADDRESS = 'https://continuo-production.acme.workers.dev';

/** Stands for wrangler and an account: records each run, and keeps databases and secrets in a file. */
const STUB = `#!${process.execPath}
const { existsSync, readFileSync, writeFileSync, appendFileSync } = require('node:fs');
const words = process.argv.slice(2);
appendFileSync('runs', JSON.stringify(words) + '\\n');
const account = existsSync('account') ? JSON.parse(readFileSync('account')) : { databases: [], secrets: null };
const command = words.filter((word) => !word.startsWith('-')).join(' ');
if (account.loggedOut && !words.includes('--dry-run')) { console.error('not logged in'); process.exit(1); }
if (command === 'd1 list') console.log(JSON.stringify(account.databases.map((name) => ({ name, uuid: '1' }))));
if (command.startsWith('d1 create')) account.databases.push(words[2]);
if (command.startsWith('d1 info')) {
  if (account.replication === undefined) { console.error('no permission'); process.exit(1); }
  console.log(JSON.stringify({ uuid: '1', read_replication: { mode: account.replication } }));
}
if (command === 'secret list') {
  if (account.secrets === null) { console.error('Worker "continuo" not found.'); process.exit(1); }
  console.log(JSON.stringify(Object.keys(account.secrets).map((name) => ({ name, type: 'secret_text' }))));
}
if (command.startsWith('deploy') && !words.includes('--dry-run')) {
  const file = words[words.indexOf('--secrets-file') + 1];
  const given = words.includes('--secrets-file') ? JSON.parse(readFileSync(file)) : {};
  account.secrets = { ...account.secrets, ...given };
  const targets = ['schedule: 17 3 * * *', '${ADDRESS}'];
  writeFileSync(process.env.WRANGLER_OUTPUT_FILE_PATH, JSON.stringify({ type: 'deploy', targets }) + '\\n');
}
writeFileSync('account', JSON.stringify(account));
`;

interface Account {
  readonly databases: readonly string[];
  readonly secrets: Readonly<Record<string, string>> | null;
  readonly loggedOut?: boolean;
  readonly replication?: 'auto' | 'disabled';
}

/** A checkout beside a stub of wrangler. @param change changes the configuration, whose addresses are set */
function checkout(change: (text: string) => string = (unchanged) => unchanged) {
  const directory = newDirectory();
  const file = (name: string) => path.join(directory, name);
  writeFileSync(file('wrangler.toml'), change(WRANGLER_TOML.replaceAll('example.com', 'example.net')));
  mkdirSync(file('bin'));
  writeFileSync(file('bin/wrangler'), STUB);
  chmodSync(file('bin/wrangler'), 0o755);
  return {
    secrets: file('secrets'),
    /** The runs of wrangler since the last call. */
    runs() {
      const lines = readFileSync(file('runs'), 'utf8').trim().split('\n');
      writeFileSync(file('runs'), '');
      return lines.filter((line) => line !== '').map((line) => (JSON.parse(line) as string[]).join(' '));
    },
    account: () => JSON.parse(readFileSync(file('account'), 'utf8')) as Account,
    prepare: (account: Account) => writeFileSync(file('account'), JSON.stringify(account)),
    /** Deploys, and returns what was printed. */
    async deploy(options: Partial<DeployOptions> = {}, variables = {}, answer: typeof fetch = fetch) {
      const environment = { PATH: `${file('bin')}:${process.env.PATH}`, ...variables };
      let printed = '';
      const sink = () =>
        new Writable({
          write(chunk, _encoding, done) {
            printed += String(chunk);
            done();
          },
        });
      let now = 0;
      await deploy(
        {
          env: 'production',
          config: file('wrangler.toml'),
          dryRun: false,
          secrets: file('secrets'),
          ...options,
        },
        {
          terminal: new Terminal({ stdin: Readable.from([]), stdout: sink(), stderr: sink() }),
          environment,
          wrangler: wranglerIn(directory, environment),
          fetch: answer,
          now: () => now,
          sleep: async (ms) => (now += ms),
        },
      );
      return printed;
    },
  };
}

const CHECK = 'deploy --dry-run --env=production';
const MIGRATIONS = ['DB', 'USAGE_DB'].map((name) => `d1 migrations apply ${name} --env=production --remote`);

const REPLICATION = 'd1 info continuo-production --json';

const SECRETS = newDirectory();

/** The deployed Worker of all checkouts. */
const { worker } = workerForTests({
  ENVIRONMENT: 'production',
  ADMIN_KEY_SHA256: hostSecret(SECRETS, 'ADMIN_KEY_SHA256'),
});

/** Gives a directory the admin key of the deployed Worker, which the result calls. */
function deployedWorker(secrets: string): typeof fetch {
  cpSync(SECRETS, secrets, { recursive: true });
  return (input, init) => fetch(String(input).replace(ADDRESS, worker.url), init);
}

test('makes what is missing, sets secrets, migrates, deploys and tests; the next run makes nothing', async () => {
  const site = checkout();
  const answer = deployedWorker(site.secrets);
  const printed = await site.deploy({}, {}, answer);
  expect(site.runs()).toEqual([
    CHECK,
    'd1 list --json',
    'd1 create continuo-production',
    'd1 create continuo-usage-production',
    'secret list --env=production',
    ...MIGRATIONS,
    expect.stringMatching(/^deploy --env=production --secrets-file \S+$/),
    REPLICATION,
  ]);
  const { secrets } = site.account();
  expect(Object.keys(secrets ?? {}).toSorted()).toEqual([
    'ADMIN_KEY_SHA256',
    'KEY_ID_SECRET',
    'ORIGIN_SECRET',
  ]);
  expect(secrets?.ORIGIN_SECRET).toBe(readFileSync(path.join(site.secrets, 'origin-secret'), 'utf8'));
  expect(printed).toContain('/health 200, /v1/completions 401, /admin/v1/plans 200');
  expect(printed).toContain(
    `npx continuo --url ${ADDRESS} --key-file ${site.secrets}/admin-key tenants create`,
  );
  for (const secret of Object.values(secrets ?? {})) expect(printed).not.toContain(secret);

  await site.deploy({}, {}, answer);
  expect(site.runs()).toEqual([
    CHECK,
    'd1 list --json',
    'secret list --env=production',
    ...MIGRATIONS,
    'deploy --env=production',
    REPLICATION,
  ]);
  expect(site.account().secrets).toEqual(secrets);
});

test.each([
  ['auto', false],
  ['disabled', true],
  [undefined, true],
] as const)('says how to turn read replication on, unless its mode is auto: %s', async (mode, isAdvised) => {
  const site = checkout();
  site.prepare({ databases: [], secrets: null, ...(mode && { replication: mode }) });
  const printed = await site.deploy({}, {}, deployedWorker(site.secrets));
  const advice = 'Let copies near the callers serve the reads of continuo-production:';
  expect(printed.includes(advice)).toBe(isAdvised);
});

test('deploys also if the address for the last test is named', async () => {
  const site = checkout();
  const answer = deployedWorker(site.secrets);
  const printed = await site.deploy({ url: 'https://api.example.net' }, {}, (input, init) =>
    answer(String(input).replace('https://api.example.net', ADDRESS), init),
  );
  expect(site.runs().at(-2)).toMatch(/^deploy --env=production --secrets-file /);
  expect(printed).toContain('Testing https://api.example.net: /health 200');
});

test('takes secrets of the environment, and makes none in a build service', async () => {
  const site = checkout((config) =>
    config.replace(
      '[env.production.vars]',
      '[env.production.vars]\nUPSTREAMS = \'[{"kind":"openai","name":"v","url":"https://v.example.net/v1","apiKey":"VLLM_KEY","models":[{"id":"m","contextLength":9}]}]\'',
    ),
  );
  await expect(site.deploy()).rejects.toThrow('lacks the secrets VLLM_KEY');
  const inBuild = site.deploy({}, { CI: 'true', VLLM_KEY: 'abc' });
  await expect(inBuild).rejects.toThrow('lacks the secrets KEY_ID_SECRET, ADMIN_KEY_SHA256');
  expect(site.account().secrets).toBeNull();
  expect(site.runs().filter((run) => run.includes('migrations'))).toEqual([]);

  const withButton = await site
    .deploy({ url: 'https://none.test' }, { WORKERS_CI: '1', CI: 'true' }, async () => Response.json({}))
    .catch((error: unknown) => String(error));
  expect(withButton).toContain('/v1/completions answers 200 instead of 401');
  expect(withButton).toContain('npx wrangler rollback --env=production.');
});

test('a dry run prints the plan, asks no account and accepts the template’s addresses', async () => {
  const site = checkout((config) => config.replaceAll('example.net', 'example.com'));
  site.prepare({ databases: [], secrets: null, loggedOut: true });
  const printed = await site.deploy({ dryRun: true });
  expect(site.runs()).toEqual([CHECK]);
  for (const run of [CHECK, 'd1 create continuo-production', ...MIGRATIONS]) {
    expect(printed).toContain(`  wrangler ${run}`);
  }
  await expect(site.deploy()).rejects.toThrow('https://origin.example.com is an example');
  expect(site.runs()).toEqual([CHECK]);
});

test('one database for keys and ledger is made once', async () => {
  const site = checkout((config) => config.replaceAll('continuo-usage-production', 'continuo-production'));
  await site.deploy({}, {}, deployedWorker(site.secrets));
  expect(site.runs().filter((run) => run.startsWith('d1 create'))).toEqual(['d1 create continuo-production']);
});

test('a database with an id is not looked for, and an account that refuses is explained', async () => {
  const named = checkout((config) =>
    config.replaceAll('migrations_dir', 'database_id = "1"\nmigrations_dir'),
  );
  const answer = deployedWorker(named.secrets);
  await named.deploy({}, {}, answer);
  expect(named.runs().filter((run) => run.startsWith('d1'))).toEqual([...MIGRATIONS, REPLICATION]);
  const stranger = checkout();
  stranger.prepare({ databases: [], secrets: null, loggedOut: true });
  await expect(stranger.deploy()).rejects.toThrow(/not logged in\nLog in with npx wrangler login/);
});

test.each([
  ['ENVIRONMENT', /^ENVIRONMENT = .*$/gm, 'ENVIRONMENT is not set'],
  ['a shield', /\[\[env\.production\.ratelimits\]\]\nname = "FLOOD_BY_KEY"\n.*\n.*\n/, 'FLOOD_BY_KEY'],
  ['a database', /\[\[env\.production\.d1_databases\]\]\nbinding = "USAGE_DB"\n.*\n.*\n/, 'USAGE_DB'],
  ['the bucket', /\[\[env\.production\.r2_buckets\]\]\n.*\n.*\n/, 'FILES'],
])('refuses an environment without %s before it runs wrangler', async (_, part, message) => {
  const site = checkout((config) => config.replace(part, ''));
  writeFileSync(path.join(path.dirname(site.secrets), 'runs'), '');
  await expect(site.deploy({ dryRun: true })).rejects.toThrow(message);
  expect(site.runs()).toEqual([]);
});

test('refuses an environment that accepts the development key', async () => {
  const site = checkout((config) => config.replaceAll('"production"', '"development"'));
  await expect(site.deploy({ env: '' })).rejects.toThrow('top level: ENVIRONMENT is development');
});

test('the button asks for every secret of the top level, and describes only what exists', () => {
  const file = path.join(ROOT, 'wrangler.toml');
  const { secrets } = readEnvironment(file, undefined);
  const example = readFileSync(path.join(ROOT, '.dev.vars.example'), 'utf8');
  const asked = [...example.matchAll(/^(\w+)=/gm)].map(([, name]) => name!);
  expect(asked.toSorted()).toEqual([...secrets].toSorted());
  const { cloudflare } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    readonly cloudflare: { readonly bindings: Readonly<Record<string, object>> };
  };
  const topLevel = WRANGLER_TOML.slice(0, WRANGLER_TOML.indexOf('[env.'));
  const described = Object.keys(cloudflare.bindings);
  const known = (name: string) =>
    asked.includes(name) || new RegExp(`^(${name} =|binding = "${name}")`, 'm').test(topLevel);
  expect(described.filter((name) => !known(name))).toEqual([]);
  expect(described).toEqual(expect.arrayContaining(asked));
});

test('npm run deploy -- --dry-run bundles with the real wrangler, without an account', async () => {
  const { PATH = '' } = process.env;
  const run = promisify(execFile)(
    process.execPath,
    [path.join(ROOT, 'origin/cli/deploy/main.ts'), '--dry-run'],
    { env: { PATH: `${path.join(ROOT, 'node_modules/.bin')}:${PATH}`, HOME: tmpdir() } },
  );
  expect((await run).stdout).toContain('wrangler d1 migrations apply DB --env= --remote');
  const wrong = promisify(execFile)(
    process.execPath,
    [path.join(ROOT, 'origin/cli/deploy/main.ts'), '--dry-run', '--env', 'nowhere'],
    { env: { PATH: `${path.join(ROOT, 'node_modules/.bin')}:${PATH}`, HOME: tmpdir() } },
  );
  await expect(wrong).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('nowhere') });
});
