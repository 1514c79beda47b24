import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { repositoryPaths } from '../../../../origin/hub/fetch/cache.ts';
import { HubClient } from '../../../../origin/hub/fetch/hub-client.ts';
import { HubError } from '../../../../origin/hub/fetch/hub-error.ts';
import {
  type PrepareContext,
  type PrepareRequest,
  prepareModel,
} from '../../../../origin/hub/prepare/prepare-model.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { readProvenance } from '../../../../origin/model/config/provenance.ts';
import { ElementType, readGraph } from '../../../../origin/model/onnx/onnx-graph.ts';
import { forEachTest } from '../../../support/for-tests.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { COMMIT, FakeHub, sha256 } from '../fetch/fake-hub.ts';
import { runnableFiles } from '../fetch/repository-files.ts';
import { shardedFiles, weightsDirectory, weightsFiles } from './weights-repository.ts';

const NAME = 'tiny-org/tiny-model';
const CPU = { provider: 'cpu', deviceId: null, memoryBytes: null } as const;

const hub = forEachTest(FakeHub.start);
let root: string;
let notes: string[];
let memory: number;

beforeEach(() => {
  root = newDirectory();
  notes = [];
  memory = Number.POSITIVE_INFINITY;
  hub.repositories.set(NAME, { files: weightsFiles() });
});

function context(endpoint = hub.endpoint, offline = false): PrepareContext {
  const cache = path.join(root, 'hub');
  const note = (line: string) => void notes.push(line);
  const sleep = () => nextTurn();
  const client = new HubClient({
    settings: { endpoint, token: null, cache, offline },
    fetch,
    retries: { maxAttempts: 2, sleep, random: () => 0.5, onRetry: note },
    stallMs: 10_000,
  });
  const progress = { start: () => ({ update() {}, stop() {} }), note };
  return { client, cache, progress, builds: path.join(root, 'builds'), availableMemory: () => memory };
}

const prepare = (name = NAME, request: Partial<PrepareRequest> = {}, from = context()) =>
  prepareModel({ name, revision: 'main', precision: 'fp32', blockSize: 32, ...request }, from);

const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'it succeeded',
    (error: Error) => error.message,
  );

describe('a repository of safetensors', () => {
  it('is fetched without the weights of other tools, and built under its published name', async () => {
    const { id, directory, built } = await prepare();
    expect(id).toBe(NAME);
    expect(built).toMatchObject({ modelType: 'llama', precision: 'fp32', unusedTensors: [] });
    expect(readProvenance(textsOf(directory))).toMatchObject({
      id: NAME,
      source: `${NAME}@${COMMIT.slice(0, 12)}`,
    });
    expect(hub.downloads('model.safetensors')).toHaveLength(1);
    for (const other of ['pytorch_model.bin', 'consolidated.safetensors', 'README.md'])
      expect(hub.downloads(other)).toEqual([]);
  });

  it('is built a second time with a KV cache in int8, which the directory says', async () => {
    const plain = await prepare();
    const quantized = await prepare(NAME, { quantizedKv: CPU });
    expect(path.basename(quantized.directory)).toBe(
      path.basename(plain.directory).replace(/-fp32-/, '-fp32-kv8-'),
    );
    const { inputs } = readGraph(readFileSync(path.join(quantized.directory, 'model.onnx')));
    const past = inputs.filter(({ name }) => name.startsWith('past_key_values'));
    expect(new Set(past.map(({ elementType }) => elementType))).toEqual(new Set([ElementType.int8]));
    expect(await prepare(NAME, { quantizedKv: CPU })).toMatchObject({ built: null });
  });

  it.each([
    { names: ['model-00001-of-000002.safetensors', 'model-00002-of-000002.safetensors'] },
    { names: ['pytorch_model-1.safetensors', 'weights/b.safetensors'] },
  ] as const)('is the shards that its index names: $names', async ({ names }) => {
    const files = shardedFiles(names);
    hub.repositories.set(NAME, { files: { ...files, 'model-00003-of-00003.safetensors': 'another model' } });
    expect((await prepare()).built?.parameters).toBeGreaterThan(0);
    for (const name of names) expect(hub.downloads(name)).toHaveLength(1);
    expect(hub.downloads('model-00003-of-00003.safetensors')).toEqual([]);
    expect(hub.downloads('model.safetensors.index.json')).toHaveLength(1);
    expect((await prepare()).built).toBeNull();
    expect((await prepare(NAME, { precision: 'int8' }, context(hub.endpoint, true))).built).not.toBeNull();
  });

  it('is refused before its weights are fetched, if it lacks a shard that its index names', async () => {
    const { 'b.safetensors': _, ...files } = shardedFiles(['a.safetensors', 'b.safetensors']);
    hub.repositories.set(NAME, { files });
    expect(await messageOf(prepare())).toBe(
      `${NAME} lacks 1 of the shards that model.safetensors.index.json names: b.safetensors`,
    );
    expect(hub.downloads('a.safetensors')).toEqual([]);
  });

  it('is neither fetched nor built a second time', async () => {
    const first = await prepare();
    const requests = hub.seen.length;
    const second = await prepare();
    expect(second).toEqual({ ...first, built: null });
    expect(hub.seen.slice(requests).map(({ method }) => method)).toEqual(['GET']); // the listing
  });

  it('is built again with another block size', async () => {
    const { directory } = await prepare(NAME, { precision: 'int8' });
    const larger = await prepare(NAME, { precision: 'int8', blockSize: 128 });
    expect(larger.built).not.toBeNull();
    expect(larger.directory).not.toBe(directory);
  });

  it('is built again from a new commit, whose unchanged files are not fetched again', async () => {
    const { directory } = await prepare();
    const commit = 'deadbeef'.repeat(5);
    const files = { ...weightsFiles(), 'generation_config.json': Buffer.from('{}') };
    hub.repositories.set(NAME, { files, commit });
    const second = await prepare();
    expect(second.built).not.toBeNull();
    expect(second.directory).toBe(directory.replace(COMMIT.slice(0, 12), commit.slice(0, 12)));
    expect(hub.downloads('model.safetensors')).toHaveLength(1);
    expect(hub.downloads('generation_config.json')).toHaveLength(1);
  });

  it('is named by its address, with a revision', async () => {
    const first = await prepare(`https://huggingface.co/${NAME}`);
    expect(first.id).toBe(NAME);
    for (const address of [`hf.co/${NAME}/tree/main`, `${hub.endpoint}/${NAME}/blob/main/model.safetensors`])
      expect(await prepare(address)).toEqual({ ...first, built: null });
    expect(await messageOf(prepare(`${NAME}@no-such`))).toBe(`${NAME} has no revision no-such`);
    expect(await messageOf(prepare(`${NAME}@v1`, { revision: 'v2' }))).toMatch(
      /^--revision v2 differs from v1 /,
    );
    expect(await messageOf(prepare(`hf.co/${NAME}/tree/main/onnx`))).toBe(
      `${NAME} has no variant onnx; available: safetensors`,
    );
  });

  it('is refused, and leaves no part of it, if the hub sends another file than it lists', async () => {
    const content = Buffer.from(weightsFiles()['model.safetensors']!).fill(7, 5000);
    hub.faults.set('model.safetensors', { content });
    expect(await messageOf(prepare())).toBe('model.safetensors: wrong checksum; the download was deleted');
    expect(existsSync(path.join(root, 'builds'))).toBe(true);
    expect(readdirSync(path.join(root, 'builds'))).toEqual([]);
    hub.faults.clear();
    expect((await prepare()).built).not.toBeNull();
  });

  it('leaves no part of a model if the disk becomes full while it is built', async () => {
    const { directory } = await prepare();
    rmSync(directory, { recursive: true });
    await using probe = await open('/dev/null');
    const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
    const write = vi.spyOn(Object.getPrototypeOf(probe) as FileHandle, 'write');
    write.mockRejectedValueOnce(full);
    onTestFinished(() => write.mockRestore());
    expect(await messageOf(prepare())).toBe(`the disk is full: ${directory}`);
    expect(readdirSync(path.dirname(directory))).toEqual(['.lock']);
    write.mockRestore();
    expect((await prepare()).built).not.toBeNull();
  });

  it('is built in the precision of its variant', async () => {
    const { directory, built } = await prepare(`${NAME}:Q4`);
    expect(built?.precision).toBe('int4');
    expect(path.basename(directory)).toBe(`tiny-org--tiny-model-${COMMIT.slice(0, 12)}-int4-8`);
  });

  it('takes what other tools of the hub have downloaded', async () => {
    const files = weightsFiles();
    hub.repositories.set(NAME, { files });
    const { blobs, snapshots } = repositoryPaths(path.join(root, 'hub'), NAME);
    const weights = files['model.safetensors']!;
    const snapshot = path.join(snapshots, COMMIT);
    for (const directory of [blobs, snapshot]) mkdirSync(directory, { recursive: true });
    writeFileSync(path.join(blobs, sha256(weights)), weights);
    symlinkSync(`../../blobs/${sha256(weights)}`, path.join(snapshot, 'model.safetensors'));
    expect((await prepare()).built).not.toBeNull();
    expect(hub.downloads('model.safetensors')).toEqual([]);
    expect(hub.downloads('tokenizer.json')).toHaveLength(1);
  });

  it('is served from the cache if the hub cannot be reached', async () => {
    const first = await prepare();
    const unreachable = context('http://127.0.0.1:9');
    expect(await prepare(NAME, {}, unreachable)).toEqual({ ...first, built: null });
    expect(notes.at(-1)).toContain(`using the cached commit ${COMMIT.slice(0, 12)}`);
    expect(await messageOf(prepare('other/model', {}, unreachable))).toMatch(/^failed after 2 attempts/);
  });

  it('is served from the cache without a request if HF_HUB_OFFLINE is set', async () => {
    const first = await prepare();
    const requests = hub.seen.length;
    const offline = context(hub.endpoint, true);
    expect(await prepare(NAME, {}, offline)).toEqual({ ...first, built: null });
    expect(await messageOf(prepare('other/model', {}, offline))).toMatch(
      /^HF_HUB_OFFLINE is set.*; other\/model is not in the cache/,
    );
    expect(hub.seen.length).toBe(requests);
  });

  it.each([
    ['config.json', { model_type: 'rwkv7' }, /^config\.json: model_type is "rwkv7"; supported is one of /],
    [
      'config.json',
      { quantization_config: { quant_method: 'gptq' } },
      /quant_method is "gptq"; supported is /,
    ],
    ['tokenizer.json', { model: { type: 'WordPiece', vocab: {} } }, /^tokenizer\.json: model\.type: /],
  ])('is refused before its weights are fetched if %s has %j', async (file, changes, message) => {
    const files = weightsFiles();
    const content = JSON.stringify({ ...JSON.parse(String(files[file])), ...changes });
    hub.repositories.set(NAME, { files: { ...files, [file]: content } });
    expect(await messageOf(prepare())).toMatch(message);
    expect(hub.downloads('model.safetensors')).toEqual([]);
  });

  it('is refused before anything is fetched if disk or memory do not suffice', async () => {
    memory = 300 * 2 ** 20;
    expect(await messageOf(prepare())).toMatch(
      /^the model needs about 4\d\d MB of memory, but 315 MB are free;/,
    );
    memory = Number.POSITIVE_INFINITY;
    hub.repositories.set(NAME, { files: weightsFiles(), sizes: { 'model.safetensors': 9e15 } });
    expect(await messageOf(prepare())).toMatch(/^the model needs about 2[67].\d PB of disk space, but /);
    expect(hub.downloads('model.safetensors')).toEqual([]);
  });

  it.skipIf(!existsSync('/dev/shm'))('needs the space of a build on the disk of its directory', async () => {
    hub.repositories.set(NAME, { files: weightsFiles(), sizes: { 'model.safetensors': 9e15 } });
    const out = path.join('/dev/shm', `continuo-${process.pid}`, 'model');
    try {
      expect(await messageOf(prepare(NAME, { out }))).toMatch(
        /^the model needs about 9\.00 PB of disk space, but /,
      );
    } finally {
      rmSync(path.dirname(out), { recursive: true });
    }
  });

  it('is refused as the hub refuses it', async () => {
    hub.repositories.set(NAME, { files: weightsFiles(), gated: true });
    expect(await messageOf(prepare())).toMatch(/^tiny-org\/tiny-model is gated: request access at /);
    expect(await messageOf(prepare('no/such-model'))).toMatch(/^no\/such-model does not exist or is private/);
  });

  it('is read to its end over a cut connection and a hub that is overloaded', async () => {
    hub.faults.set('model.safetensors', { cuts: [1000], statuses: [429], headers: { 'retry-after': '1' } });
    expect((await prepare()).built?.parameters).toBeGreaterThan(0);
    expect(hub.downloads('model.safetensors').map(({ range }) => range)).toContain('bytes=1000-');
  });
});

describe('other sources', () => {
  it('serves an ONNX graph as it is, from a repository or a directory', async () => {
    hub.repositories.set(NAME, { files: runnableFiles() });
    const { directory, built, variant } = await prepare();
    expect({ built, variant }).toEqual({ built: null, variant: 'fp32' });
    expect(await prepare(directory)).toMatchObject({ directory, built: null });
    const served = /has a graph, which is served as it is; --(adapter|kv|out) needs safetensors or GGUF$/;
    for (const source of [NAME, directory]) {
      expect(await messageOf(prepare(source, { quantizedKv: CPU }))).toMatch(served);
      expect(await messageOf(prepare(source, { adapter: root }))).toMatch(served);
      expect(await messageOf(prepare(source, { out: path.join(root, 'mine') }))).toMatch(served);
    }
  });

  it('refuses weights without tokenizer.json before they are fetched', async () => {
    const { 'tokenizer.json': _, ...files } = weightsFiles();
    hub.repositories.set(NAME, { files });
    expect(await messageOf(prepare())).toMatch(/^tiny-org\/tiny-model has no tokenizer\.json; /);
    expect(hub.downloads('model.safetensors')).toEqual([]);
    const source = weightsDirectory();
    rmSync(path.join(source, 'tokenizer.json'));
    expect(await messageOf(prepare(source))).toMatch(/ has no tokenizer\.json; /);
  });

  it.each([
    [
      ['adapter_config.json', 'adapter_model.safetensors'],
      / is the adapter adapter_model\.safetensors: serve /,
    ],
    [['config.json', 'pytorch_model.bin'], / has its weights only as pytorch_model\.bin: pickled /],
    [['m-Q8_0.gguf', 'm-F16.gguf'], / has no safetensors, but GGUF files: serve .*m-Q8_0\.gguf$/],
    [['README.md'], / has no safetensors, no GGUF file and no ONNX decoder, only README\.md$/],
  ])('says what a directory has in place of a model: %s', async (files, message) => {
    for (const file of files) writeFileSync(path.join(root, file), '{}');
    expect(await messageOf(prepare(root))).toMatch(message);
  });

  it('refuses an adapter that is no directory by the name of its option', async () => {
    for (const adapter of ['owner/adapter', import.meta.filename])
      expect(await messageOf(prepare(weightsDirectory(), { adapter }))).toBe(
        `--adapter ${adapter} is not a directory; download the adapter and name its directory`,
      );
  });

  it('builds a directory again only if its files have changed', async () => {
    const source = weightsDirectory();
    const first = await prepare(source);
    expect((await prepare(source)).built).toBeNull();
    const config = path.join(source, 'config.json');
    writeFileSync(config, `${readFileSync(config, 'utf8')}\n`);
    const second = await prepare(source);
    expect(second.built).not.toBeNull();
    expect(second.directory).not.toBe(first.directory);
  });

  it('builds into a named directory, and takes it for the result only of the same build', async () => {
    const out = path.join(root, 'mine');
    const source = weightsDirectory();
    expect((await prepare(source, { out })).directory).toBe(out);
    expect(existsSync(path.join(out, 'model.onnx'))).toBe(true);
    expect((await prepare(source, { out })).built).toBeNull();
    const held =
      /mine holds checkpoint in fp32, built from other files; remove it or name another directory$/;
    expect(await messageOf(prepare(source, { out, precision: 'int8' }))).toMatch(held);
    expect(await messageOf(prepare(weightsDirectory(), { out }))).toMatch(held);
  });

  it('refuses a directory of something else before anything is fetched', async () => {
    expect(await messageOf(prepare(NAME, { out: root }))).toMatch(/ is no built model; remove it or name /);
    expect(hub.downloads('model.safetensors')).toEqual([]);
  });

  it('builds once if two processes want the same model, and removes interrupted builds', async () => {
    const interrupted = path.join(root, 'builds', 'other.partial');
    mkdirSync(interrupted, { recursive: true });
    const both = await Promise.all([prepare(), prepare()]);
    expect(both.filter(({ built }) => built !== null)).toHaveLength(1);
    expect(existsSync(interrupted)).toBe(false);
  });

  it.each([
    ['pickled weights', { 'config.json': '{}', 'pytorch_model.bin': 'x' }, /pickled files can run code/],
    [
      'no weights',
      { 'config.json': '{}' },
      /has no safetensors, no GGUF file and no ONNX decoder, only config/,
    ],
  ])('refuses a repository with %s', async (_, files, message) => {
    hub.repositories.set(NAME, { files });
    expect(await messageOf(prepare())).toMatch(message);
  });

  it.each([
    ['./missing', /^there is no file or directory \.\/missing$/],
    ['missing.gguf', /^there is no file or directory missing\.gguf$/],
    ['no-owner', /is not a model name: it must have the form owner\/name/],
    [import.meta.filename, /is neither a directory nor a \.gguf file$/],
  ])('refuses the name %s', async (name, message) => {
    await expect(prepare(name)).rejects.toThrow(HubError);
    expect(await messageOf(prepare(name))).toMatch(message);
  });
});
