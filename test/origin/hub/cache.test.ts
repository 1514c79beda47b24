import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { repositoryPaths } from '../../../origin/hub/cache-layout.ts';
import { forEachTest } from '../../support/for-tests.ts';
import { COMMIT, gitDigest, sha256 } from './fake-hub.ts';
import { FILES, NAME, PullStage, WEIGHTS } from './pull-fixture.ts';
import { emptyDirectory } from './repository-files.ts';

const stage = forEachTest(() => PullStage.start());

describe('what a pull leaves in the cache', () => {
  test('the files of one variant, each with the hub’s bytes, and nothing else', async () => {
    stage.offer();
    const { directory, variant, commit } = await stage.run({ variant: 'q4f16' });
    expect({ variant, commit }).toEqual({ variant: 'q4f16', commit: COMMIT });
    expect(directory).toBe(path.join(stage.paths().snapshots, COMMIT));
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

  test('an empty file is there, too', async () => {
    stage.offer({ files: { ...FILES, 'special_tokens_map.json': '' } });
    const { directory } = await stage.run({ variant: 'q4f16' });
    expect(readFileSync(path.join(directory, 'special_tokens_map.json'), 'utf8')).toBe('');
  });

  test('blobs under the checksums that git and LFS give, the commit under refs, no unfinished file', async () => {
    stage.offer();
    await stage.run({ variant: 'q4f16' });
    const contents = Object.entries(FILES)
      .filter(([name]) => /q4f16|json$/.test(name))
      .map(([, content]) => Buffer.from(content));
    const expected = contents.map((content) =>
      content.length >= 1000 ? sha256(content) : gitDigest(content),
    );
    expect(readdirSync(stage.paths().blobs).toSorted()).toEqual([...new Set(expected)].toSorted());
    expect(readFileSync(path.join(stage.paths().refs, 'main'), 'utf8')).toBe(COMMIT);
  });

  test('a second pull asks for no file again', async () => {
    stage.offer();
    await stage.run();
    stage.hub.seen.length = 0;
    await stage.run();
    expect(stage.hub.seen.map(({ path }) => path)).toEqual([`/api/models/${NAME}/revision/main`]);
  });

  test('another variant fetches only what differs', async () => {
    stage.offer();
    await stage.run({ variant: 'q4f16' });
    stage.hub.seen.length = 0;
    await stage.run({ variant: 'q8' });
    const fetched = stage.hub.seen.filter(({ server }) => server === 'store').map(({ path }) => path);
    expect(fetched).toEqual(['/signed/onnx/model_quantized.onnx']);
  });

  test('a revision with slashes becomes a reference with directories; a commit needs none', async () => {
    stage.offer();
    await stage.run({ revision: 'refs/pr/1' });
    expect(readFileSync(path.join(stage.paths().refs, 'refs/pr/1'), 'utf8')).toBe(COMMIT);
    await stage.run({ revision: COMMIT });
    expect(readdirSync(stage.paths().refs)).toEqual(['refs']);
  });

  test('a link another tool made becomes a file of the snapshot, without a transfer', async () => {
    stage.offer();
    const { directory } = await stage.run();
    const other = emptyDirectory();
    const blob = path.join(other, 'elsewhere');
    writeFileSync(blob, 'x');
    const { blobs, snapshots } = repositoryPaths(other, NAME);
    for (const made of [blobs, path.join(snapshots, COMMIT, 'onnx')]) mkdirSync(made, { recursive: true });
    const content = readFileSync(path.join(directory, WEIGHTS));
    writeFileSync(path.join(blobs, sha256(content)), content);
    symlinkSync(`../../../blobs/${sha256(content)}`, path.join(snapshots, COMMIT, WEIGHTS));
    stage.cache = other;
    stage.hub.seen.length = 0;
    await stage.run();
    expect(stage.hub.transfers(WEIGHTS)).toEqual([]);
    const [entry] = readdirSync(path.join(snapshots, COMMIT, 'onnx'), { withFileTypes: true }).filter(
      ({ name }) => name === path.basename(WEIGHTS),
    );
    expect(entry?.isFile()).toBe(true);
  });

  test('a hub that lists names alone is asked for each file’s checksum', async () => {
    stage.offer({ namesOnly: true });
    await stage.run();
    expect(readFileSync(stage.weightsBlob())).toEqual(FILES[WEIGHTS]);
    const heads = stage.hub.seen.filter(({ method, server }) => method === 'HEAD' && server === 'hub');
    expect(heads).toHaveLength(7);
  });
});
