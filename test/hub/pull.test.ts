import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { repositoryPaths } from '../../origin/hub/cache-layout.ts';
import { HubClient } from '../../origin/hub/hub-client.ts';
import { HubError } from '../../origin/hub/hub-error.ts';
import { type PullRequest, pull } from '../../origin/hub/pull.ts';
import { COMMIT, FakeHub, type FakeRepository, gitDigest, sha256 } from './fake-hub.ts';
import { communityFiles, emptyDirectory, patternless } from './tiny-repository.ts';

const NAME = 'tiny-org/tiny-model';
const WEIGHTS = 'onnx/model_q4f16.onnx_data';
const FILES = communityFiles();

let hub: FakeHub;
let cache: string;
let notes: string[];
let pauses: number[];

beforeEach(async () => {
  hub = await FakeHub.start();
  hub.held = () => statSync(`${weightsBlob()}.incomplete`, { throwIfNoEntry: false })?.size ?? 0;
  cache = emptyDirectory();
  notes = [];
  pauses = [];
});
afterEach(() => hub.stop());

const offer = (repository: Partial<FakeRepository> = {}) =>
  hub.repositories.set(NAME, { files: FILES, ...repository });

interface Circumstances {
  readonly token?: string | null;
  readonly stallMs?: number;
}

function run(request: Partial<PullRequest> = {}, { token = null, stallMs = 10_000 }: Circumstances = {}) {
  const sleep = async (ms: number) => void pauses.push(ms);
  const client = new HubClient({
    settings: { endpoint: hub.endpoint, token, cache },
    fetch,
    patience: { attempts: 4, sleep, random: () => 0.5, onRetry: (reason) => void notes.push(reason) },
    stallMs,
  });
  const progress = {
    start: () => ({ update() {}, stop() {} }),
    note: (line: string) => void notes.push(line),
  };
  return pull({ repository: NAME, revision: 'main', ...request }, { client, cache, progress, sleep });
}

/** The message a pull fails with; it must be one line. */
async function fault(...args: Parameters<typeof run>): Promise<string> {
  const error = await run(...args).then(
    () => new Error('it did not fail'),
    (thrown: Error) => thrown,
  );
  expect(error).toBeInstanceOf(HubError);
  expect(error.message).not.toContain('\n');
  return error.message;
}

const paths = () => repositoryPaths(cache, NAME);
const weightsBlob = () => path.join(paths().blobs, sha256(FILES[WEIGHTS] as Buffer));

describe('what a pull leaves in the cache', () => {
  test('the files of one variant, each with the hub’s bytes, and nothing else', async () => {
    offer();
    const { directory, variant, commit } = await run({ variant: 'q4f16' });
    expect({ variant, commit }).toEqual({ variant: 'q4f16', commit: COMMIT });
    expect(directory).toBe(path.join(paths().snapshots, COMMIT));
    const files = readdirSync(directory, { recursive: true })
      .map(String)
      .filter((name) => name !== 'onnx');
    expect(files.toSorted()).toEqual([
      'config.json',
      'generation_config.json',
      'onnx/model_q4f16.onnx',
      WEIGHTS,
      'special_tokens_map.json',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    for (const file of files) {
      expect(readFileSync(path.join(directory, file))).toEqual(Buffer.from(FILES[file]!));
    }
  });

  test('blobs under the checksums that git and LFS give, the commit under refs, no unfinished file', async () => {
    offer();
    await run({ variant: 'q4f16' });
    const contents = Object.entries(FILES)
      .filter(([name]) => /q4f16|json$/.test(name))
      .map(([, content]) => Buffer.from(content));
    const expected = contents.map((content) =>
      content.length >= 1000 ? sha256(content) : gitDigest(content),
    );
    expect(readdirSync(paths().blobs).toSorted()).toEqual([...new Set(expected)].toSorted());
    expect(readFileSync(path.join(paths().refs, 'main'), 'utf8')).toBe(COMMIT);
  });

  test('a second pull asks for no file again', async () => {
    offer();
    await run();
    hub.seen.length = 0;
    await run();
    expect(hub.seen.map(({ path }) => path)).toEqual([`/api/models/${NAME}/revision/main`]);
  });

  test('another variant fetches only what differs', async () => {
    offer();
    await run({ variant: 'q4f16' });
    hub.seen.length = 0;
    await run({ variant: 'q8' });
    const fetched = hub.seen.filter(({ server }) => server === 'store').map(({ path }) => path);
    expect(fetched).toEqual(['/signed/onnx/model_quantized.onnx']);
  });

  test('a revision with slashes becomes a reference with directories; a commit needs none', async () => {
    offer();
    await run({ revision: 'refs/pr/1' });
    expect(readFileSync(path.join(paths().refs, 'refs/pr/1'), 'utf8')).toBe(COMMIT);
    await run({ revision: COMMIT });
    expect(readdirSync(paths().refs)).toEqual(['refs']);
  });

  test('a link another tool made becomes a file of the snapshot, without a transfer', async () => {
    offer();
    const { directory } = await run();
    const other = emptyDirectory();
    const blob = path.join(other, 'elsewhere');
    writeFileSync(blob, 'x');
    const { blobs, snapshots } = repositoryPaths(other, NAME);
    for (const made of [blobs, path.join(snapshots, COMMIT, 'onnx')]) mkdirSync(made, { recursive: true });
    const content = readFileSync(path.join(directory, WEIGHTS));
    writeFileSync(path.join(blobs, sha256(content)), content);
    symlinkSync(`../../../blobs/${sha256(content)}`, path.join(snapshots, COMMIT, WEIGHTS));
    cache = other;
    hub.seen.length = 0;
    await run();
    expect(hub.transfers(WEIGHTS)).toEqual([]);
    const [entry] = readdirSync(path.join(snapshots, COMMIT, 'onnx'), { withFileTypes: true }).filter(
      ({ name }) => name === path.basename(WEIGHTS),
    );
    expect(entry?.isFile()).toBe(true);
  });

  test('a hub that lists names alone is asked for each file’s checksum', async () => {
    offer({ namesOnly: true });
    await run();
    expect(readFileSync(weightsBlob())).toEqual(FILES[WEIGHTS]);
    const heads = hub.seen.filter(({ method, server }) => method === 'HEAD' && server === 'hub');
    expect(heads).toHaveLength(7);
  });
});

describe('bad lines', () => {
  test('three cuts during one file cost nothing that had arrived', async () => {
    offer();
    hub.faults.set(WEIGHTS, { cuts: [50_000, 0, 100_000] });
    await run();
    expect(readFileSync(weightsBlob())).toEqual(FILES[WEIGHTS]);
    const starts = hub.transfers(WEIGHTS).map(({ range }) => range);
    expect(starts).toEqual([undefined, 'bytes=50000-', 'bytes=50000-', 'bytes=150000-']);
    expect(pauses).toEqual([375, 750, 375]);
  });

  test('a server that ignores Range sends all of it, and the file is right', async () => {
    offer();
    hub.ranges = false;
    hub.faults.set(WEIGHTS, { cuts: [50_000, 120_000] });
    await run();
    expect(readFileSync(weightsBlob())).toEqual(FILES[WEIGHTS]);
    expect(hub.transfers(WEIGHTS)).toHaveLength(3);
  });

  test('a busy server is asked again after the time it names', async () => {
    offer();
    hub.faults.set(WEIGHTS, { statuses: [503, 500, 429] });
    await run();
    expect(readFileSync(weightsBlob())).toEqual(FILES[WEIGHTS]);
    expect(notes).toHaveLength(3);
  });

  test('attempts that bring nothing end in one line; what had arrived stays for the next pull', async () => {
    offer();
    hub.faults.set(WEIGHTS, { cuts: [70_000, 0, 0, 0, 0, 0, 0] });
    expect(await fault()).toMatch(/^given up after 4 attempts: connection to localhost:\d+ lost/);
    expect(statSync(`${weightsBlob()}.incomplete`).size).toBe(70_000);
    hub.faults.clear();
    hub.seen.length = 0;
    await run();
    expect(hub.transfers(WEIGHTS).map(({ range }) => range)).toEqual(['bytes=70000-']);
    expect(readFileSync(weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test('a connection that falls silent counts as lost', async () => {
    offer();
    hub.faults.set(WEIGHTS, { silent: true });
    expect(await fault({}, { stallMs: 80 })).toMatch(/nothing came for too long/);
  });

  test('a hub that cannot be reached is named', async () => {
    const settings = { endpoint: hub.endpoint, token: null, cache };
    await hub.stop();
    const patience = { attempts: 2, sleep: async () => undefined, random: () => 0, onRetry: () => undefined };
    const client = new HubClient({ settings, fetch, patience, stallMs: 1000 });
    await expect(client.listing(NAME, 'main')).rejects.toThrow(/127\.0\.0\.1:\d+ lost: ECONNREFUSED/);
    hub = await FakeHub.start();
  });
});

describe('bad content', () => {
  test('wrong bytes are refused and not kept', async () => {
    offer();
    hub.faults.set(WEIGHTS, { content: patternless(300_000, 99) });
    expect(await fault()).toBe(`${WEIGHTS}: the checksum is wrong; nothing of it was kept`);
    expect(existsSync(weightsBlob())).toBe(false);
    expect(existsSync(`${weightsBlob()}.incomplete`)).toBe(false);
    expect(existsSync(path.join(paths().snapshots, COMMIT, WEIGHTS))).toBe(false);
  });

  test('wrong bytes of a small file are refused by git’s checksum', async () => {
    offer();
    hub.faults.set('config.json', { content: Buffer.from('{"model_type":"LLAMA"}') });
    expect(await fault()).toBe('config.json: the checksum is wrong; nothing of it was kept');
  });

  test('more bytes than announced are refused', async () => {
    offer();
    hub.faults.set(WEIGHTS, { content: patternless(300_001) });
    expect(await fault()).toMatch(/sends more than the 300000 bytes/);
  });

  test('an unfinished file that was damaged is fetched again from its beginning', async () => {
    offer();
    mkdirSync(paths().blobs, { recursive: true });
    writeFileSync(`${weightsBlob()}.incomplete`, Buffer.alloc(1000));
    await run();
    expect(hub.transfers(WEIGHTS).map(({ range }) => range)).toEqual(['bytes=1000-', undefined]);
    expect(readFileSync(weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test('an unfinished file longer than the file itself is fetched again', async () => {
    offer();
    mkdirSync(paths().blobs, { recursive: true });
    writeFileSync(`${weightsBlob()}.incomplete`, Buffer.alloc(400_000));
    await run();
    expect(readFileSync(weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test.each([
    '../../evil.json',
    '/etc/config.json',
    'onnx/../../config.json',
    'onnx\\..\\config.json',
    'a//b',
  ])('a hub that names the file %s is refused before anything is written', async (name) => {
    offer({ files: { ...FILES, [name]: '{}' } });
    expect(await fault()).toMatch(/^the hub names a file outside the model/);
    expect(readdirSync(cache)).toEqual([]);
  });

  test('a model that cannot fit is refused before the first byte', async () => {
    offer({ sizes: { [WEIGHTS]: 9e15 } });
    expect(await fault()).toMatch(/^9\.00 PB are missing, but .* has room for /);
    expect(hub.seen.filter(({ path }) => path.includes('/resolve/'))).toEqual([]);
  });

  test.runIf(existsSync('/dev/full'))('a disk that fills up is named', async () => {
    offer();
    mkdirSync(paths().blobs, { recursive: true });
    symlinkSync('/dev/full', `${weightsBlob()}.incomplete`);
    expect(await fault()).toBe(`the disk is full: ${weightsBlob()}.incomplete`);
  });
});

describe('refusals', () => {
  test('a gated model says where to ask, and for a token where there is none', async () => {
    offer({ gated: true });
    const ask = `${NAME} is gated: ask for access at ${hub.endpoint}/${NAME}`;
    expect(await fault()).toBe(`${ask} and set HF_TOKEN`);
    expect(await fault({}, { token: 'hf_secret' })).toBe(ask);
  });

  test('an unknown model, with and without a token', async () => {
    expect(await fault()).toBe(`${NAME} does not exist, or is private: then set HF_TOKEN`);
    expect(await fault({}, { token: 'hf_secret' })).toBe(`the hub does not accept the token for ${NAME}`);
  });

  test('an unknown revision', async () => {
    offer();
    expect(await fault({ revision: 'v9' })).toBe(`${NAME} has no revision v9`);
  });

  test('a missing variant names those that exist', async () => {
    offer();
    expect(await fault({ variant: 'int4' })).toBe(`${NAME} has no variant int4; there are: q4f16, fp32, q8`);
  });

  test('a repository without an ONNX decoder', async () => {
    offer({ files: { 'config.json': '{}', 'model.safetensors': 'x' } });
    expect(await fault()).toBe(`${NAME} has no ONNX decoder`);
  });

  test('the token goes to the hub and never to the store', async () => {
    offer();
    await run({}, { token: 'hf_secret' });
    const seen = (server: string) => hub.seen.filter((request) => request.server === server);
    expect(new Set(seen('hub').map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer hf_secret']),
    );
    expect(seen('store').length).toBeGreaterThan(0);
    expect(seen('store').filter(({ authorization }) => authorization !== undefined)).toEqual([]);
  });
});
