import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { forEachTest } from '../../../support/for-tests.ts';
import { COMMIT } from './fake-hub.ts';
import { FILES, PullFixture, WEIGHTS } from './pull-fixture.ts';
import { randomBytes } from './repository-files.ts';

const fixture = forEachTest(() => PullFixture.start());

describe('wrong content', () => {
  test('rejects a file with a wrong SHA-256 and deletes it', async () => {
    fixture.offer();
    fixture.hub.faults.set(WEIGHTS, { content: randomBytes(300_000, 99) });
    expect(await fixture.fault()).toBe(`${WEIGHTS}: wrong checksum; the download was deleted`);
    expect(existsSync(fixture.weightsBlob())).toBe(false);
    expect(existsSync(`${fixture.weightsBlob()}.incomplete`)).toBe(false);
    expect(existsSync(path.join(fixture.paths().snapshots, COMMIT, WEIGHTS))).toBe(false);
  });

  test('rejects a small file with a wrong git SHA-1', async () => {
    fixture.offer();
    fixture.hub.faults.set('config.json', { content: Buffer.from('{"model_type":"LLAMA"}') });
    expect(await fixture.fault()).toBe('config.json: wrong checksum; the download was deleted');
  });

  test('rejects more bytes than announced', async () => {
    fixture.offer();
    fixture.hub.faults.set(WEIGHTS, { content: randomBytes(300_001) });
    expect(await fixture.fault()).toMatch(/sends more than the announced 300000 bytes/);
  });

  test('downloads a damaged partial file again from byte 0', async () => {
    fixture.offer();
    mkdirSync(fixture.paths().blobs, { recursive: true });
    writeFileSync(`${fixture.weightsBlob()}.incomplete`, Buffer.alloc(1000));
    await fixture.run();
    expect(fixture.hub.downloads(WEIGHTS).map(({ range }) => range)).toEqual(['bytes=1000-', undefined]);
    expect(readFileSync(fixture.weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test('downloads again if the partial file is longer than the file', async () => {
    fixture.offer();
    mkdirSync(fixture.paths().blobs, { recursive: true });
    writeFileSync(`${fixture.weightsBlob()}.incomplete`, Buffer.alloc(400_000));
    await fixture.run();
    expect(readFileSync(fixture.weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test.each([
    '../../evil.json',
    '/etc/config.json',
    'onnx/../../config.json',
    'onnx\\..\\config.json',
    'a//b',
    'onnx/.. /config.json',
    'onnx/config.json.',
  ])('rejects a listing with the path %s before it writes anything', async (name) => {
    fixture.offer({ files: { ...FILES, [name]: '{}' } });
    expect(await fixture.fault()).toMatch(/^the hub lists a file with an unsafe path/);
    expect(readdirSync(fixture.cache)).toEqual([]);
  });

  test('rejects a model that does not fit on the disk before the first download', async () => {
    fixture.offer({ sizes: { [WEIGHTS]: 9e15 } });
    expect(await fixture.fault()).toMatch(
      /^the download needs about 9\.00 PB of disk space, but .* has .* free$/,
    );
    expect(fixture.hub.seen.filter(({ path }) => path.includes('/resolve/'))).toEqual([]);
  });

  test.runIf(existsSync('/dev/full'))('names the directory if the disk is full', async () => {
    fixture.offer();
    mkdirSync(fixture.paths().blobs, { recursive: true });
    symlinkSync('/dev/full', `${fixture.weightsBlob()}.incomplete`);
    expect(await fixture.fault()).toBe(`the disk is full: ${fixture.paths().root}`);
  });
});
