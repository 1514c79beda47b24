import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { forEachTest } from '../../support/for-tests.ts';
import { COMMIT } from './fake-hub.ts';
import { FILES, PullStage, WEIGHTS } from './pull-fixture.ts';
import { patternless } from './repository-files.ts';

const stage = forEachTest(() => PullStage.start());

describe('bad content', () => {
  test('wrong bytes are refused and not kept', async () => {
    stage.offer();
    stage.hub.faults.set(WEIGHTS, { content: patternless(300_000, 99) });
    expect(await stage.fault()).toBe(`${WEIGHTS}: the checksum is wrong; nothing of it was kept`);
    expect(existsSync(stage.weightsBlob())).toBe(false);
    expect(existsSync(`${stage.weightsBlob()}.incomplete`)).toBe(false);
    expect(existsSync(path.join(stage.paths().snapshots, COMMIT, WEIGHTS))).toBe(false);
  });

  test('wrong bytes of a small file are refused by git’s checksum', async () => {
    stage.offer();
    stage.hub.faults.set('config.json', { content: Buffer.from('{"model_type":"LLAMA"}') });
    expect(await stage.fault()).toBe('config.json: the checksum is wrong; nothing of it was kept');
  });

  test('more bytes than announced are refused', async () => {
    stage.offer();
    stage.hub.faults.set(WEIGHTS, { content: patternless(300_001) });
    expect(await stage.fault()).toMatch(/sends more than the 300000 bytes/);
  });

  test('an unfinished file that was damaged is fetched again from its beginning', async () => {
    stage.offer();
    mkdirSync(stage.paths().blobs, { recursive: true });
    writeFileSync(`${stage.weightsBlob()}.incomplete`, Buffer.alloc(1000));
    await stage.run();
    expect(stage.hub.transfers(WEIGHTS).map(({ range }) => range)).toEqual(['bytes=1000-', undefined]);
    expect(readFileSync(stage.weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test('an unfinished file longer than the file itself is fetched again', async () => {
    stage.offer();
    mkdirSync(stage.paths().blobs, { recursive: true });
    writeFileSync(`${stage.weightsBlob()}.incomplete`, Buffer.alloc(400_000));
    await stage.run();
    expect(readFileSync(stage.weightsBlob())).toEqual(FILES[WEIGHTS]);
  });

  test.each([
    '../../evil.json',
    '/etc/config.json',
    'onnx/../../config.json',
    'onnx\\..\\config.json',
    'a//b',
  ])('a hub that names the file %s is refused before anything is written', async (name) => {
    stage.offer({ files: { ...FILES, [name]: '{}' } });
    expect(await stage.fault()).toMatch(/^the hub names a file outside the model/);
    expect(readdirSync(stage.cache)).toEqual([]);
  });

  test('a model that cannot fit is refused before the first byte', async () => {
    stage.offer({ sizes: { [WEIGHTS]: 9e15 } });
    expect(await stage.fault()).toMatch(/^9\.00 PB are missing, but .* has room for /);
    expect(stage.hub.seen.filter(({ path }) => path.includes('/resolve/'))).toEqual([]);
  });

  test.runIf(existsSync('/dev/full'))('a disk that fills up is named', async () => {
    stage.offer();
    mkdirSync(stage.paths().blobs, { recursive: true });
    symlinkSync('/dev/full', `${stage.weightsBlob()}.incomplete`);
    expect(await stage.fault()).toBe(`the disk is full: ${stage.weightsBlob()}.incomplete`);
  });
});
