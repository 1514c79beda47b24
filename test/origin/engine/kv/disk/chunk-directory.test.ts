import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import fs from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ChunkDirectory } from '../../../../../origin/engine/kv/disk/chunk-directory.ts';
import { newDirectory } from '../../../../support/new-directory.ts';
import { randomFrom, runs } from '../../../../support/random.ts';
import { contentOf, contentsOf, FILE, nameOf, open } from './chunk-content.ts';
import { faultyFileSystem as faulty } from './faulty-file-system.ts';

const fileOf = (directory: string, name: string) => join(directory, `${name}.kv`);
const bytesOf = (directory: string) =>
  readdirSync(directory).reduce((sum, file) => sum + statSync(join(directory, file)).size, 0);

async function store(chunks: ChunkDirectory, names: readonly string[], contents = 0): Promise<void> {
  for (const name of names) chunks.write(name, contents, contentOf(name, contents));
  await chunks.settled();
}

const serials = (count: number, family = 1) => Array.from({ length: count }, (_, at) => nameOf(family, at));

describe('a directory of chunks', () => {
  it('keeps chunks over a restart, readable by their owner only', async () => {
    const directory = newDirectory();
    await store(open(directory), serials(5), 2);
    const again = open(directory);
    await again.settled();
    expect(again.status).toMatchObject({ files: 5, bytes: bytesOf(directory), failedChunks: 0 });
    for (const name of serials(5)) {
      expect(await contentsOf(again, name)).toBe(2);
      expect(statSync(fileOf(directory, name)).mode & 0o777).toBe(0o600);
    }
    expect(again.status.readChunks).toBe(5);
  });

  it('replaces a chunk only by one that has more', async () => {
    const chunks = open(newDirectory());
    const [name] = serials(1);
    for (const contents of [1, 0, 1, 2, 0]) await store(chunks, [name!], contents);
    expect(await contentsOf(chunks, name!)).toBe(2);
    expect(chunks.status).toMatchObject({ files: 1, writtenChunks: 2 });
  });

  it.each<[string, (file: Buffer, other: Buffer) => Buffer]>([
    ['is empty', () => Buffer.alloc(0)],
    ['is cut off within the header', (file) => file.subarray(0, 50)],
    ['is cut off', (file) => file.subarray(0, -1)],
    ['has more bytes', (file) => Buffer.concat([file, Buffer.alloc(2000)])],
    ['is another chunk', (_, other) => other],
    ['is a text', () => Buffer.alloc(FILE, 'text')],
  ])('ignores and removes a file that %s, with one line', async (_, damage) => {
    const directory = newDirectory();
    const [name, other, third] = serials(3) as [string, string, string];
    await store(open(directory), [name, other, third]);
    const [good, otherFile] = [name, other].map((one) => readFileSync(fileOf(directory, one)));
    for (const one of [name, third]) writeFileSync(fileOf(directory, one), damage(good!, otherFile!));
    const lines: string[] = [];
    const chunks = open(directory, { warn: (line) => lines.push(line) });
    await chunks.settled();
    for (const one of [name, third]) expect(await contentsOf(chunks, one)).toBeNull();
    await chunks.settled();
    expect(chunks.has(name)).toBe(false);
    expect(readdirSync(directory)).toEqual([`${other}.kv`]);
    expect(lines).toEqual(['a damaged or foreign chunk was removed']);
    expect(chunks.status).toMatchObject({ failedChunks: 2, readChunks: 0 });
    await store(chunks, [name]);
    expect(await contentsOf(chunks, name)).toBe(0);
  });

  it('ignores and removes a file that was made with another secret', async () => {
    const directory = newDirectory();
    const [name] = serials(1) as [string];
    await store(open(directory, { secret: 'guessed' }), [name]);
    const chunks = open(directory);
    await chunks.settled();
    expect(await contentsOf(chunks, name)).toBeNull();
    await chunks.settled();
    expect(readdirSync(directory)).toEqual([]);
  });

  it('ignores a file that was renamed to another chunk', async () => {
    const directory = newDirectory();
    const [name, other] = serials(2) as [string, string];
    await store(open(directory), [name]);
    renameSync(fileOf(directory, name), fileOf(directory, other));
    const chunks = open(directory);
    await chunks.settled();
    expect(await contentsOf(chunks, other)).toBeNull();
  });

  it('may be shared: each origin reads, replaces and evicts right chunks, whatever the other one does', async () => {
    const directory = newDirectory();
    const faults: string[] = [];
    const warn = (line: string) => faults.push(line);
    const limits = [{ limitBytes: 12 * FILE }, { limitBytes: 8 * FILE }];
    const origins = limits.map((limit, at) => open(directory, { ...limit, id: `${at}`, warn }));
    const random = randomFrom(34);
    let read = 0;
    for (let round = 0; round < 400; round++) {
      const at = Math.floor(random() * 2);
      const name = nameOf(1, Math.floor(random() * 20));
      origins[at]!.write(name, round % 3, contentOf(name, round % 3));
      const wanted = nameOf(1, Math.floor(random() * 20));
      if ((await contentsOf(origins[1 - at]!, wanted)) !== null) read++;
      // Its predecessor may still be writing.
      if (round % 40 === 0) origins[at] = open(directory, { ...limits[at], id: `start ${round}`, warn });
      if (round % 5 === 0) await Promise.all(origins.map((origin) => origin.settled()));
    }
    await Promise.all(origins.map((origin) => origin.settled()));
    expect(read).toBeGreaterThan(100);
    expect(faults.filter((line) => line.includes('stored'))).toEqual([]);
    expect(readdirSync(directory).filter((file) => !file.endsWith('.kv'))).toEqual([]);
  });

  it('leaves the temporary file of another origin alone until it is old', async () => {
    const directory = newDirectory();
    const files = [`${nameOf(1, 0)}.kv.new.tmp`, `${nameOf(1, 1)}.kv.old.tmp`];
    for (const file of files) writeFileSync(join(directory, file), 'partial');
    utimesSync(join(directory, files[1]!), new Date(), new Date(Date.now() - 61_000));
    const chunks = open(directory);
    await chunks.settled();
    expect(readdirSync(directory)).toEqual([files[0]]);
  });

  it('ignores a file with any flipped bit', async () => {
    const directory = newDirectory();
    const [name] = serials(1) as [string];
    await store(open(directory), [name]);
    const path = fileOf(directory, name);
    const good = readFileSync(path);
    for (let at = 0; at < good.length; at++) {
      const bad = Buffer.from(good);
      bad[at]! ^= 1 << (at % 8);
      writeFileSync(path, bad);
      const chunks = open(directory);
      await chunks.settled();
      expect(await contentsOf(chunks, name)).toBeNull();
    }
  });

  it('leaves other files alone', async () => {
    const directory = newDirectory();
    writeFileSync(join(directory, 'notes.txt'), 'mine');
    mkdirSync(join(directory, 'folder'));
    const lines: string[] = [];
    const chunks = open(directory, { limitBytes: 1, warn: (line) => lines.push(line) });
    await chunks.settled();
    expect(chunks.status).toMatchObject({ files: 0, bytes: 0 });
    expect(readdirSync(directory).sort()).toEqual(['folder', 'notes.txt']);
    expect(lines).toEqual(['2 other files are ignored']);
  });

  it('removes the least recently used chunks first, also those used before a restart', async () => {
    const directory = newDirectory();
    let now = Date.now();
    const names = serials(5);
    const first = open(directory, { now: () => now });
    await store(first, names);
    now += 3_600_000;
    // As the path of a prompt: chunk 0 is before chunk 1, and is needed longer.
    first.use([names[0]!, names[1]!]);
    await first.settled();
    const keepAllButOne = async () => {
      const again = open(directory, { limitBytes: bytesOf(directory) - 1 });
      await again.settled();
      return names.filter((name) => again.has(name));
    };
    for (let kept = 4; kept > 2; kept--) expect(await keepAllButOne()).toHaveLength(kept);
    expect(await keepAllButOne()).toEqual(names.slice(0, 2));
    expect(await keepAllButOne()).toEqual(names.slice(0, 1));
  });

  it('saves the time of a chunk that is used all the time once in ten minutes', async () => {
    let [now, saved] = [Date.now(), 0];
    const utimes: typeof fs.utimes = async (...args) => {
      saved++;
      await fs.utimes(...args);
    };
    const chunks = open(newDirectory(), { now: () => now, fs: { ...fs, utimes } });
    const names = serials(10);
    await store(chunks, names);
    const useOften = async () => {
      for (let use = 0; use < 70_000; use++) chunks.use(names);
      await chunks.settled();
    };
    await useOften();
    expect(saved).toBe(0);
    now += 600_000;
    await useOften();
    expect(saved).toBe(names.length);
  });

  it('counts a file that cannot be written, logs it once a minute, and goes on', async () => {
    const directory = newDirectory();
    let [now, full] = [0, true];
    const lines: string[] = [];
    const options = { now: () => now, warn: (line: string) => lines.push(line) };
    const chunks = open(directory, { ...options, fs: faulty('ENOSPC', (call) => call === 'open' && full) });
    await store(chunks, serials(3));
    now += 60_000;
    await store(chunks, serials(4));
    full = false;
    await store(chunks, serials(5));
    expect(lines).toEqual(Array(2).fill('a chunk could not be stored: ENOSPC'));
    expect(chunks.status).toMatchObject({ files: 5, writtenChunks: 5, failedChunks: 7 });
  });

  it('holds no more than its queue, and drops the rest at once', async () => {
    const lines: string[] = [];
    const chunks = open(newDirectory(), { queueBytes: 3 * FILE, warn: (line) => lines.push(line) });
    for (let round = 0; round < 2; round++) await store(chunks, serials(10, round));
    expect(chunks.status).toMatchObject({ files: 6, writtenChunks: 6, failedChunks: 14 });
    expect(lines).toHaveLength(1);
  });

  it('never has more bytes than its limit, and fills it', async () => {
    const directory = newDirectory();
    const options = { limitBytes: 10 * FILE };
    for (let serial = 0; serial < 40; serial++) {
      // A limit that is lowered between two starts holds for the files of the first one.
      if (serial % 15 === 0) options.limitBytes -= 2 * FILE;
      const chunks = open(directory, options);
      await store(chunks, [nameOf(1, serial)]);
      expect(bytesOf(directory)).toBeLessThanOrEqual(options.limitBytes);
      expect(chunks.status.bytes).toBe(bytesOf(directory));
    }
    expect(bytesOf(directory)).toBeGreaterThan(options.limitBytes - FILE);
  });

  it('stores nothing larger than its limit', async () => {
    const chunks = open(newDirectory(), { limitBytes: 100 });
    await store(chunks, serials(2));
    expect(chunks.status).toMatchObject({ files: 0, bytes: 0, failedChunks: 2 });
  });

  it.each([
    ['is missing', {}],
    ['cannot be read', { fs: faulty('EACCES', () => true) }],
  ])('that %s has no chunks, and costs no more than that', async (_, options) => {
    const directory = join(newDirectory(), 'missing');
    const chunks = open(directory, options);
    await store(chunks, serials(2));
    expect(await contentsOf(chunks, nameOf(1, 0))).toBeNull();
    expect(chunks.status).toMatchObject({ files: 0, writtenChunks: 0, failedChunks: 3 });
  });

  it('removes a family with the chunks of it that are being written', async () => {
    for (const turns of [0, 1, 2, 4, 8, 16]) {
      const directory = newDirectory();
      const chunks = open(directory);
      await store(chunks, [...serials(2), ...serials(2, 2)]);
      for (const name of serials(6).slice(3)) chunks.write(name, 0, contentOf(name, 0));
      for (let turn = 0; turn < turns; turn++) await fs.stat(directory);
      chunks.removeFamily(nameOf(1, 77));
      expect(serials(6).filter((name) => chunks.has(name))).toEqual([]);
      await store(chunks, [nameOf(1, 4)]);
      expect(readdirSync(directory).sort()).toEqual(
        [...serials(2, 2), nameOf(1, 4)].map((name) => `${name}.kv`).sort(),
      );
    }
  });

  it('gives right chunks only, and is within its limit after each write, whatever fails', async () => {
    const step = fc.record({
      action: fc.constantFrom(
        ...['write', 'write', 'write', 'read', 'read', 'read', 'use'],
        ...['remove', 'restart', 'damage'],
      ),
      name: fc.record({ family: fc.constantFrom(0, 0, 0, 1), serial: fc.nat(5) }),
      contents: fc.nat(2),
      waits: fc.constantFrom(true, true, false),
    });
    let read = 0;
    let failed = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 20, maxLength: 60, size: 'max' }),
        fc.constantFrom(2, 5, 30),
        fc.infiniteStream(fc.nat(15)),
        async (steps, room, faults) => {
          const directory = newDirectory();
          const random = faults[Symbol.iterator]();
          const options = {
            limitBytes: room * FILE,
            queueBytes: 6 * FILE,
            fs: faulty('EIO', () => random.next().value === 0),
          };
          let chunks = open(directory, options);
          let written = 0;
          for (const { action, name: parts, contents, waits } of steps) {
            const name = nameOf(parts.family, parts.serial);
            if (action === 'write') chunks.write(name, contents, contentOf(name, contents));
            else if (action === 'read') read += (await contentsOf(chunks, name)) === null ? 0 : 1;
            else if (action === 'use') chunks.use([name, nameOf(parts.family, parts.serial + 1)]);
            else if (action === 'remove') chunks.removeFamily(name);
            else if (action === 'restart') {
              failed += chunks.status.failedChunks;
              await chunks.settled();
              chunks = open(directory, options);
            } else if (chunks.has(name)) {
              writeFileSync(fileOf(directory, name), Buffer.alloc(1 + (contents * FILE) / 2, 1));
            }
            if (waits) await chunks.settled();
            // A start may find more than the limit, after files could not be listed or removed.
            const { writtenChunks, bytes } = chunks.status;
            if (writtenChunks > written) expect(bytes).toBeLessThanOrEqual(options.limitBytes);
            written = writtenChunks;
          }
          await chunks.settled();
        },
      ),
      { numRuns: runs(150) },
    );
    expect(read).toBeGreaterThan(runs(100));
    expect(failed).toBeGreaterThan(runs(100));
  });
});
