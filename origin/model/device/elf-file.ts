import { closeSync, openSync, readSync } from 'node:fs';

/** Reads parts of an ELF file (System V ABI: ELF header, section headers, dynamic section). */

const DYNAMIC_SECTION = 6;
const NEEDED = 1n;
const HEADER_BYTES = 64;
const SECTION_BYTES = 64;
const ENTRY_BYTES = 16;

type Read = (position: number, length: number) => Buffer;

interface Section {
  readonly nameOffset: number;
  readonly type: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
}

/** Returns needed libraries in order. @throws Error completing "libx.so …" unless 64-bit little-endian ELF */
export const neededLibraries = (path: string): string[] => withFile(path, readNeeded);

/** Returns the section of constants, empty if there is none. @throws as `neededLibraries` */
export const readOnlyData = (path: string): Buffer =>
  withFile(path, (read) => {
    const section = findSection(read, '.rodata');
    return section === undefined ? Buffer.alloc(0) : read(section.offset, section.size);
  });

/** Returns where a section is in the file, in bytes. @throws as `neededLibraries` */
export const sectionOf = (path: string, name: string): { offset: number; size: number } | undefined =>
  withFile(path, (read) => findSection(read, name));

function findSection(read: Read, name: string): Section | undefined {
  const { sections, names } = readSections(read);
  return sections.find(({ nameOffset }) => nameAt(names, nameOffset) === name);
}

function withFile<T>(path: string, use: (read: Read) => T): T {
  const file = openSync(path, 'r');
  try {
    return use((position, length) => {
      const bytes = Buffer.alloc(length);
      if (readSync(file, bytes, 0, length, position) < length) throw new Error('is truncated');
      return bytes;
    });
  } finally {
    closeSync(file);
  }
}

function readSections(read: Read): { sections: Section[]; names: Buffer } {
  const header = read(0, HEADER_BYTES);
  const isElf64 = header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2 && header[5] === 1;
  if (!isElf64) throw new Error('is not a shared library of this platform');
  const sectionTable = Number(header.readBigUInt64LE(0x28));
  const sections = Array.from({ length: header.readUInt16LE(0x3c) }, (_, index) => {
    const section = read(sectionTable + index * SECTION_BYTES, SECTION_BYTES);
    return {
      nameOffset: section.readUInt32LE(0),
      type: section.readUInt32LE(4),
      offset: Number(section.readBigUInt64LE(0x18)),
      size: Number(section.readBigUInt64LE(0x20)),
      link: section.readUInt32LE(0x28),
    };
  });
  const names = sections[header.readUInt16LE(0x3e)];
  return { sections, names: names === undefined ? Buffer.alloc(0) : read(names.offset, names.size) };
}

function readNeeded(read: Read): string[] {
  const { sections } = readSections(read);
  const dynamic = sections.find(({ type }) => type === DYNAMIC_SECTION);
  const strings = sections[dynamic?.link ?? 0];
  if (dynamic === undefined || strings === undefined) return [];
  const entries = read(dynamic.offset, dynamic.size);
  const names = read(strings.offset, strings.size);
  const needed: string[] = [];
  for (let at = 0; at + ENTRY_BYTES <= entries.length; at += ENTRY_BYTES) {
    if (entries.readBigUInt64LE(at) !== NEEDED) continue;
    needed.push(nameAt(names, Number(entries.readBigUInt64LE(at + 8))));
  }
  return needed;
}

const nameAt = (strings: Buffer, start: number): string =>
  strings.toString('latin1', start, strings.indexOf(0, start));
