import { closeSync, openSync, readSync } from 'node:fs';

/** Reads the NEEDED entries of an ELF file (System V ABI: ELF header, section headers, dynamic section). */

const DYNAMIC_SECTION = 6;
const NEEDED = 1n;
const HEADER_BYTES = 64;
const SECTION_BYTES = 64;
const ENTRY_BYTES = 16;

/** Returns the needed libraries in file order. @throws Error that completes "libx.so …" if it is not 64-bit little-endian ELF */
export function neededLibraries(path: string): string[] {
  const file = openSync(path, 'r');
  try {
    return readNeeded((position, length) => {
      const bytes = Buffer.alloc(length);
      if (readSync(file, bytes, 0, length, position) < length) throw new Error('is truncated');
      return bytes;
    });
  } finally {
    closeSync(file);
  }
}

function readNeeded(read: (position: number, length: number) => Buffer): string[] {
  const header = read(0, HEADER_BYTES);
  const isElf64 = header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2 && header[5] === 1;
  if (!isElf64) throw new Error('is not a shared library of this platform');
  const sectionTable = Number(header.readBigUInt64LE(0x28));
  const sections = Array.from({ length: header.readUInt16LE(0x3c) }, (_, index) => {
    const section = read(sectionTable + index * SECTION_BYTES, SECTION_BYTES);
    return {
      type: section.readUInt32LE(4),
      offset: Number(section.readBigUInt64LE(0x18)),
      size: Number(section.readBigUInt64LE(0x20)),
      link: section.readUInt32LE(0x28),
    };
  });
  const dynamic = sections.find(({ type }) => type === DYNAMIC_SECTION);
  const strings = sections[dynamic?.link ?? 0];
  if (dynamic === undefined || strings === undefined) return [];
  const entries = read(dynamic.offset, dynamic.size);
  const names = read(strings.offset, strings.size);
  const needed: string[] = [];
  for (let at = 0; at + ENTRY_BYTES <= entries.length; at += ENTRY_BYTES) {
    if (entries.readBigUInt64LE(at) !== NEEDED) continue;
    const start = Number(entries.readBigUInt64LE(at + 8));
    needed.push(names.toString('latin1', start, names.indexOf(0, start)));
  }
  return needed;
}
