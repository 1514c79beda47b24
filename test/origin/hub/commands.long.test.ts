import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { bareEnvironment } from '../../support/child-processes.ts';
import { forEachTest } from '../../support/for-tests.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { runCli } from '../cli/run-cli.ts';
import { COMMIT, FakeHub, sha256 } from './fetch/fake-hub.ts';
import { communityFiles, randomBytes, runnableFiles } from './fetch/repository-files.ts';

/** `continuo model` in this process, or in one of its own where that matters. */

const MAIN = fileURLToPath(new URL('../../../origin/cli/main.ts', import.meta.url));
const NAME = 'tiny-org/tiny-model';
const WEIGHTS = 'onnx/model_q4f16.onnx_data';
const FILES = communityFiles(randomBytes(600_000));

const hub = forEachTest(FakeHub.start);
let home: string;

beforeEach(() => {
  hub.bytesOnDisk = () => statSync(partial(), { throwIfNoEntry: false })?.size ?? 0;
  home = newDirectory();
  variables = {};
});

/** Additional environment variables of the command. */
let variables: Record<string, string> = {};

const environment = () => ({
  HOME: home,
  HF_HOME: path.join(home, 'hf'),
  HF_ENDPOINT: hub.endpoint,
  ...variables,
});

function start(...args: string[]) {
  const env = { ...bareEnvironment(), ...environment() };
  const child = spawn(process.execPath, [MAIN, 'model', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const ended = once(child, 'close').then(async ([code]: (number | null)[]) => {
    const [stdout, stderr] = await output;
    return { code, stdout, stderr };
  });
  return { child, ended };
}

const model = (...args: string[]) => runCli(['model', ...args], { environment: environment() });
const repository = () => path.join(home, 'hf', 'hub', 'models--tiny-org--tiny-model');
const snapshot = () => path.join(repository(), 'snapshots', COMMIT);
const partial = () => path.join(repository(), 'blobs', `${sha256(FILES[WEIGHTS] as Buffer)}.incomplete`);

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(20);
}

describe('continuo model', () => {
  test('pulls, lists, checks and removes a model', async () => {
    hub.repositories.set(NAME, { files: runnableFiles() });
    const pulled = await start('pull', NAME).ended;
    expect(pulled).toMatchObject({ code: 0, stdout: `CONTINUO_MODEL_DIR=${snapshot()}\n` });
    const listed = await model('list');
    expect(listed.stdout).toMatch(/tiny-org\/tiny-model.*main.*fp32.*\d kB/);
    const checked = await model('check', NAME, '--prompt', 'abc');
    expect(checked.stderr).toBe('');
    expect(checked.stdout).toMatch(/2 layers, 2 KV heads of 16/);
    expect(checked.stdout).toMatch(/decode\s.*\d tokens\/s for one sequence, \d+ tokens\/s for 64/);
    expect(checked.stdout).toMatch(/64\W+slots × 512 positions/);
    variables = { CONTINUO_SLOTS: '3', CONTINUO_CONTEXT: '100' };
    expect((await model('check', NAME, '--prompt', 'abc')).stdout).toMatch(/3\W+slots × 100 positions/);
    variables = {};
    expect(checked.stdout).toMatch(
      /batch invariance\s.*yes: a row has the same bits in a batch of 1 and of 64/,
    );
    const removed = await model('remove', NAME);
    expect(removed.stdout).toMatch(/^removed tiny-org\/tiny-model, \d+ kB\n$/);
    expect(existsSync(repository())).toBe(false);
    expect((await model('list')).stdout).toBe('');
  });

  test('prints CONTINUO_MODEL_VARIANT if the origin would load another precision; check loads that variant', async () => {
    const files = {
      ...runnableFiles('q4', 'onnx/model_q4.onnx'),
      ...runnableFiles('none', 'onnx/model.onnx'),
    };
    hub.repositories.set(NAME, { files });
    const place = `CONTINUO_MODEL_DIR=${snapshot()}\n`;
    for (const [variant, stdout] of [
      ['fp32', place],
      ['q4', place],
      // The origin prefers 4 bits.
      ['fp32', `${place}CONTINUO_MODEL_VARIANT=fp32\n`],
    ] as const)
      expect(await model('pull', NAME, '--variant', variant)).toMatchObject({ code: 0, stdout });
    for (const where of [NAME, snapshot()]) {
      const checked = await model('check', where, '--variant', 'fp32', '--prompt', 'abc');
      expect([checked.stderr, checked.stdout.includes('onnx/model.onnx: 2 layers')]).toEqual(['', true]);
    }
    const missing = await model('check', snapshot(), '--variant', 'q8');
    expect(missing.stderr).toMatch(/has no variant q8; available: q4, fp32$/m);
  });

  test('check without a name loads every model of the models file with its settings, and one by its name', async () => {
    for (const [name, content] of Object.entries(runnableFiles())) {
      mkdirSync(path.dirname(path.join(home, 'tiny', name)), { recursive: true });
      writeFileSync(path.join(home, 'tiny', name), content);
    }
    const models = [
      { name: 'small', directory: 'tiny', slots: 2, context: 64 },
      { name: 'large', directory: 'tiny', slots: 4, context: 128 },
    ];
    const file = path.join(home, 'models.json');
    writeFileSync(file, JSON.stringify({ models }));
    variables = { CONTINUO_MODELS_FILE: file };
    const all = await model('check', '--prompt', 'abc');
    expect([all.code, all.stderr]).toEqual([0, '']);
    expect(all.stdout).toMatch(
      /small[\s\S]*2\W+slots × 64 positions[\s\S]*large[\s\S]*4\W+slots × 128 positions/,
    );
    const one = await model('check', 'large', '--prompt', 'abc', '--json');
    expect(JSON.parse(one.stdout)).toMatchObject({
      name: 'large',
      model: expect.stringContaining('4 slots'),
    });
    variables = { CONTINUO_MODEL_DIR: path.join(home, 'tiny'), CONTINUO_SLOTS: '3' };
    expect((await model('check', '--prompt', 'abc')).stdout).toMatch(/3\W+slots/);
  });

  test('check uses the provider and device of the environment', async () => {
    hub.repositories.set(NAME, { files: runnableFiles() });
    await model('pull', NAME);
    variables = { CONTINUO_PROVIDER: 'cuda', ORT_CUDA_PATH: home };
    expect((await start('check', NAME).ended).stderr).toMatch(/^continuo: CUDA lacks libonnx/);
    variables = { CONTINUO_DEVICE_ID: '1' };
    expect((await model('check', NAME)).stderr).toMatch(
      /a device id is set, but the provider cpu ignores it/,
    );
    variables = { CONTINUO_SLOTS: 'abc' };
    expect((await model('check', NAME)).stderr).toMatch(
      /^continuo: CONTINUO_SLOTS: received "abc"; expected/,
    );
  });

  test('links a path of the user’s choice with --link and never replaces a file', async () => {
    hub.repositories.set(NAME, { files: runnableFiles() });
    const link = path.join(home, 'current');
    for (const round of [1, 2]) {
      const { code, stdout } = await model('pull', NAME, '--link', link);
      expect({ round, code, stdout }).toEqual({ round, code: 0, stdout: `CONTINUO_MODEL_DIR=${link}\n` });
    }
    expect((await model('check', link, '--prompt', 'abc')).code).toBe(0);
    const file = path.join(snapshot(), 'config.json');
    const refused = await model('pull', NAME, '--link', file);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain(`${file} exists and is not a symbolic link`);
  });

  test('reports and survives three lost connections during one pull', async () => {
    hub.repositories.set(NAME, { files: FILES });
    hub.faults.set(WEIGHTS, { cuts: [90_000, 150_000, 1] });
    const { code, stderr } = await model('pull', NAME, '--variant', 'q4f16');
    expect(code).toBe(0);
    expect(stderr.match(/connection to localhost:\d+ lost: .*; next attempt in 0\.\d s/g)).toHaveLength(3);
    expect(readFileSync(path.join(snapshot(), WEIGHTS))).toEqual(FILES[WEIGHTS]);
    expect(hub.downloads(WEIGHTS).map(({ range }) => range)).toEqual([
      undefined,
      'bytes=90000-',
      'bytes=240000-',
      'bytes=240001-',
    ]);
  });

  test('uses the proxy of the environment', async () => {
    hub.repositories.set(NAME, { files: FILES });
    const targets: (string | undefined)[] = [];
    const proxy = createServer().on('connect', ({ url }, client, head) => {
      targets.push(url);
      const { hostname, port } = new URL(`http://${url}`);
      const onward = connect(Number(port), hostname, () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        onward.write(head);
        onward.pipe(client).pipe(onward);
      });
      for (const socket of [client, onward]) socket.on('error', () => undefined);
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    variables = { HTTP_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
    expect((await start('pull', NAME).ended).code).toBe(0);
    proxy.close();
    expect(new Set(targets)).toEqual(
      new Set([hub.endpoint, hub.storageAddress].map((url) => new URL(url).host)),
    );
  });

  test('resumes a killed pull at the end of the partial file', async () => {
    hub.repositories.set(NAME, { files: FILES });
    let pieces = 0;
    // The rest never comes, so that the pull cannot end before it is killed.
    const pause = () => (++pieces < 3 ? Promise.resolve() : Promise.withResolvers<void>().promise);
    hub.faults.set(WEIGHTS, { slowly: { bytes: 50_000, pause } });
    const { child, ended } = start('pull', NAME);
    await until(() => existsSync(partial()) && statSync(partial()).size >= 100_000);
    child.kill('SIGKILL');
    await ended;
    const kept = statSync(partial()).size;
    hub.faults.clear();
    hub.seen.length = 0;
    expect((await model('pull', NAME)).code).toBe(0);
    expect(hub.downloads(WEIGHTS).map(({ range }) => range)).toEqual([`bytes=${kept}-`]);
    expect(readFileSync(path.join(snapshot(), WEIGHTS))).toEqual(FILES[WEIGHTS]);
  });

  test('downloads every file once in two concurrent pulls; the second waits and says so', async () => {
    hub.repositories.set(NAME, { files: FILES });
    const waits = Promise.withResolvers<void>();
    hub.faults.set(WEIGHTS, { slowly: { bytes: 100_000, pause: () => waits.promise } });
    const first = start('pull', NAME);
    await until(() => existsSync(partial()));
    const second = start('pull', NAME);
    second.child.stderr.on('data', (text: string) => text.includes('waiting for') && waits.resolve());
    const results = await Promise.all([first.ended, second.ended]);
    expect(results.map(({ code }) => code)).toEqual([0, 0]);
    expect(results[1].stderr).toContain(`waiting for another pull of ${NAME}`);
    expect(new Set(results.map(({ stdout }) => stdout))).toEqual(
      new Set([`CONTINUO_MODEL_DIR=${snapshot()}\n`]),
    );
    const contents = hub.seen.filter(({ path }) => path.includes('/resolve/')).map(({ path }) => path);
    expect(contents.toSorted()).toEqual([...new Set(contents)].toSorted());
    expect(readFileSync(path.join(snapshot(), WEIGHTS))).toEqual(FILES[WEIGHTS]);
  });

  test.each([
    ['a gated model', ['pull', 'gated/model'], /^continuo: gated\/model is gated: request access at /],
    [
      'a missing variant',
      ['pull', NAME, '--variant', 'q3'],
      /has no variant q3; available: q4f16, fp32, q8$/,
    ],
    ['a name without an owner', ['pull', 'model'], /must have the form owner\/name$/],
    ['a revision that leaves its directory', ['pull', NAME, '--revision', '../x'], /not a valid revision$/],
    [
      'a check of a model that was not pulled',
      ['check', 'no/model'],
      /not in the cache at revision main; pull it first$/,
    ],
    ['a path that does not exist', ['check', '/no/model'], /^continuo: there is no directory \/no\/model$/],
    ['a relative path that does not exist', ['check', './no'], /^continuo: there is no directory .\/no$/],
    [
      'a removal of a model that was not pulled',
      ['remove', 'no/model'],
      /^continuo: no\/model is not in the cache$/,
    ],
    ['a directory without a model', ['check', '/'], /^continuo: .*tokenizer\.json is missing$/],
  ] as const)('fails with one line on stderr and exit code 1 for %s', async (_, args, line) => {
    hub.repositories.set(NAME, { files: FILES });
    hub.repositories.set('gated/model', { files: FILES, gated: true });
    const { code, stdout, stderr } = await model(...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(line);
    expect(stderr).not.toMatch(/^ +at /m);
  });
});
