import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { newDirectory } from '../../../support/new-directory.ts';
import { compiledLibrary, reducedLibrary } from './fat-binary.ts';

const HEADER_BYTES = 64;
const PTX = 1;
const MACHINE_CODE = 2;

interface Entry {
  readonly kind: number;
  readonly architecture: number;
  readonly code: string;
  /** As the tools of CUDA 13 write it. */
  readonly compressed?: boolean;
}

/** A container as NVIDIA's tools write it, as far as it is read. */
function containerOf(entries: readonly Entry[]): Buffer {
  const parts = entries.map(({ kind, architecture, code: text, compressed = false }) => {
    const code = compressed ? zstdCompressSync(text) : Buffer.from(text);
    const head = Buffer.alloc(HEADER_BYTES);
    head.writeUInt16LE(kind, 0);
    head.writeUInt32LE(HEADER_BYTES, 4);
    head.writeBigUInt64LE(BigInt(code.length + (compressed ? 3 : 0)), 8);
    if (compressed) head.writeUInt32LE(code.length, 16);
    head.writeUInt32LE(architecture, 28);
    return Buffer.concat([head, code, Buffer.alloc(compressed ? 3 : 0)]);
  });
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(16);
  head.writeUInt32LE(0xba55ed50, 0);
  head.writeUInt16LE(head.length, 6);
  head.writeBigUInt64LE(BigInt(body.length), 8);
  return Buffer.concat([head, body]);
}

/** Writes an ELF file with this section, one of names and nothing else. */
function elfWith(name: string, section: Buffer): string {
  const names = Buffer.from(`\0${name}\0.shstrtab\0`);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(0x7f454c46, 0);
  header.set([2, 1], 4);
  const table = HEADER_BYTES + section.length + names.length;
  header.writeBigUInt64LE(BigInt(table), 0x28);
  header.writeUInt16LE(2, 0x3c);
  header.writeUInt16LE(1, 0x3e);
  const entryOf = (nameOffset: number, offset: number, size: number) => {
    const entry = Buffer.alloc(64);
    entry.writeUInt32LE(nameOffset, 0);
    entry.writeBigUInt64LE(BigInt(offset), 0x18);
    entry.writeBigUInt64LE(BigInt(size), 0x20);
    return entry;
  };
  const entries = [
    entryOf(1, HEADER_BYTES, section.length),
    entryOf(name.length + 2, HEADER_BYTES + section.length, names.length),
  ];
  const file = path.join(newDirectory(), 'library.so');
  writeFileSync(file, Buffer.concat([header, section, names, ...entries]));
  return file;
}

const padding = Buffer.alloc(24);
const library = () =>
  elfWith(
    '.nv_fatbin',
    Buffer.concat([
      containerOf([
        { kind: MACHINE_CODE, architecture: 80, code: 'ampere--' },
        { kind: MACHINE_CODE, architecture: 90, code: 'hopper-1' },
        { kind: PTX, architecture: 90, code: 'text-90-' },
      ]),
      padding,
      containerOf([{ kind: MACHINE_CODE, architecture: 100, code: 'blackwel' }]),
      containerOf([{ kind: MACHINE_CODE, architecture: 90, code: 'hopper-2' }]),
      padding,
    ]),
  );

/** The words of code that are left. */
const left = (bytes: Buffer) => bytes.toString('latin1').match(/ampere--|hopper-.|text-90-|blackwel/g);

describe('fat binaries', () => {
  test('keeps only the machine code of one architecture, in a file of the same size', () => {
    const reduced = reducedLibrary(library(), { architecture: 90, ptx: false });
    expect(left(reduced)).toEqual(['hopper-1', 'hopper-2']);
    expect(reduced).toHaveLength(reducedLibrary(library(), { architecture: 80, ptx: false }).length);
  });

  test('keeps PTX of the architecture on request', () => {
    const reduced = reducedLibrary(library(), { architecture: 90, ptx: true });
    expect(left(reduced)).toEqual(['hopper-1', 'text-90-', 'hopper-2']);
  });

  test('refuses a library without code for the architecture', () => {
    expect(() => reducedLibrary(library(), { architecture: 75, ptx: true })).toThrow('for architecture 75');
  });

  test('refuses a library without fat binaries, and one with other bytes between them', () => {
    const kept = { architecture: 90, ptx: false };
    expect(() => reducedLibrary(elfWith('.text', padding), kept)).toThrow('has no section .nv_fatbin');
    const strange = elfWith('.nv_fatbin', Buffer.from('something else'));
    expect(() => reducedLibrary(strange, kept)).toThrow('no fat binary at byte 0');
  });

  const texts = (longest: string) =>
    elfWith(
      '.nv_fatbin',
      Buffer.concat([
        containerOf([
          { kind: PTX, architecture: 80, code: 'text-80-\0' },
          { kind: PTX, architecture: 90, code: longest, compressed: true },
        ]),
        padding,
        containerOf([{ kind: PTX, architecture: 90, code: 'text-90-\0' }]),
      ]),
    );

  test('takes compiled code in place of every container, without its PTX, in a file of the same size', async () => {
    const library = texts('text-90-\0');
    const seen: string[] = [];
    const compiled = await compiledLibrary(library, 90, async (ptx, index) => {
      seen.push(`${index}: ${ptx}`);
      return containerOf([{ kind: MACHINE_CODE, architecture: 90, code: `hopper-${index}` }]);
    });
    expect(seen.toSorted()).toEqual(['0: text-90-', '1: text-90-']);
    expect(left(compiled)).toEqual(['hopper-0', 'hopper-1']);
    expect(compiled).toHaveLength(readFileSync(library).length);
  });

  test('refuses a container without PTX of the architecture, and code that has no room', async () => {
    const compile = async () => Buffer.alloc(4096);
    await expect(compiledLibrary(texts('a\0'), 80, compile)).rejects.toThrow('container 1: no PTX for 80');
    await expect(compiledLibrary(texts('a\0'), 90, compile)).rejects.toThrow('no room');
  });
});
