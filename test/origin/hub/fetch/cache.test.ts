import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { repositoryPaths } from '../../../../origin/hub/fetch/cache.ts';
import { forEachTest } from '../../../support/for-tests.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { COMMIT, gitDigest, sha256 } from './fake-hub.ts';
import { FILES, NAME, PullFixture, WEIGHTS } from './pull-fixture.ts';

const fixture = forEachTest(() => PullFixture.start());

describe('the cache after a pull', () => {
  test('has the files of one variant with the hub’s bytes and no others', async () => {
    fixture.offer();
    const { directory, variant, commit } = await fixture.run({ variant: 'q4f16' });
    expect({ variant, commit }).toEqual({ variant: 'q4f16', commit: COMMIT });
    expect(directory).toBe(path.join(fixture.paths().snapshots, COMMIT));
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

  test('has empty files', async () => {
    fixture.offer({ files: { ...FILES, 'special_tokens_map.json': '' } });
    const { directory } = await fixture.run({ variant: 'q4f16' });
    expect(readFileSync(path.join(directory, 'special_tokens_map.json'), 'utf8')).toBe('');
  });

  test('names blobs by the checksums of git and LFS, records the commit, keeps no partial file', async () => {
    fixture.offer();
    await fixture.run({ variant: 'q4f16' });
    const contents = Object.entries(FILES)
      .filter(([name]) => /q4f16|json$/.test(name))
      .map(([, content]) => Buffer.from(content));
    const expected = contents.map((content) =>
      content.length >= 1000 ? sha256(content) : gitDigest(content),
    );
    expect(readdirSync(fixture.paths().blobs).toSorted()).toEqual([...new Set(expected)].toSorted());
    expect(readFileSync(path.join(fixture.paths().refs, 'main'), 'utf8')).toBe(COMMIT);
  });

  test('makes a second pull without a file request', async () => {
    fixture.offer();
    await fixture.run();
    fixture.hub.seen.length = 0;
    await fixture.run();
    expect(fixture.hub.seen.map(({ path }) => path)).toEqual([`/api/models/${NAME}/revision/main`]);
  });

  test('downloads only the missing files of another variant', async () => {
    fixture.offer();
    await fixture.run({ variant: 'q4f16' });
    fixture.hub.seen.length = 0;
    await fixture.run({ variant: 'q8' });
    const fetched = fixture.hub.seen.filter(({ server }) => server === 'storage').map(({ path }) => path);
    expect(fetched).toEqual(['/signed/onnx/model_quantized.onnx']);
  });

  test('stores a revision with slashes in directories and no reference for a commit', async () => {
    fixture.offer();
    await fixture.run({ revision: 'refs/pr/1' });
    expect(readFileSync(path.join(fixture.paths().refs, 'refs/pr/1'), 'utf8')).toBe(COMMIT);
    await fixture.run({ revision: COMMIT });
    expect(readdirSync(fixture.paths().refs)).toEqual(['refs']);
  });

  test('replaces another tool’s symbolic link by a hard link, without a download', async () => {
    fixture.offer();
    const { directory } = await fixture.run();
    const other = newDirectory();
    const blob = path.join(other, 'elsewhere');
    writeFileSync(blob, 'x');
    const { blobs, snapshots } = repositoryPaths(other, NAME);
    for (const made of [blobs, path.join(snapshots, COMMIT, 'onnx')]) mkdirSync(made, { recursive: true });
    const content = readFileSync(path.join(directory, WEIGHTS));
    writeFileSync(path.join(blobs, sha256(content)), content);
    symlinkSync(`../../../blobs/${sha256(content)}`, path.join(snapshots, COMMIT, WEIGHTS));
    fixture.cache = other;
    fixture.hub.seen.length = 0;
    await fixture.run();
    expect(fixture.hub.downloads(WEIGHTS)).toEqual([]);
    const [entry] = readdirSync(path.join(snapshots, COMMIT, 'onnx'), { withFileTypes: true }).filter(
      ({ name }) => name === path.basename(WEIGHTS),
    );
    expect(entry?.isFile()).toBe(true);
  });

  test('reads the checksums from the headers if the hub lists only names', async () => {
    fixture.offer({ namesOnly: true });
    await fixture.run();
    expect(readFileSync(fixture.weightsBlob())).toEqual(FILES[WEIGHTS]);
    const heads = fixture.hub.seen.filter(({ method, server }) => method === 'HEAD' && server === 'hub');
    expect(heads).toHaveLength(7);
  });
});
