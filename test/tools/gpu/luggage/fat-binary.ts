import { readFileSync } from 'node:fs';
import { sectionOf } from '../../../../origin/model/device/elf-file.ts';

/** Of CUDA's fat binaries: containers of code for several architectures, one after the other. */
const MAGIC = 0xba55ed50;
/** Kind of an entry whose code is text that the driver compiles. */
const PTX = 1;
/** What linkers align containers to. */
const ALIGNMENT = 4;

export interface KeptCode {
  /** 90 = Hopper. */
  readonly architecture: number;
  /** Whether PTX of the architecture is kept beside its machine code. */
  readonly ptx: boolean;
}

/**
 * Returns a library with the code of one architecture and zeros instead of the code of others. No address
 * changes, and zeros compress to nothing.
 * @throws Error if the library has no code for the architecture
 */
export function reducedLibrary(file: string, kept: KeptCode): Buffer {
  const library = readFileSync(file);
  const section = sectionOf(file, '.nv_fatbin');
  if (section === undefined) throw new Error(`${file} has no section .nv_fatbin`);
  const code = library.subarray(section.offset, section.offset + section.size);
  if (keepArchitecture(code, kept) === 0)
    throw new Error(`${file} has no code for architecture ${kept.architecture}`);
  return library;
}

/**
 * Overwrites the code of all other architectures by zeros, in place. Compressed code stays compressed.
 * @returns the bytes of code that are kept
 * @throws Error if something other than padding is between containers
 */
function keepArchitecture(section: Buffer, { architecture, ptx }: KeptCode): number {
  let kept = 0;
  for (let container = 0; container + ALIGNMENT <= section.length; ) {
    const magic = section.readUInt32LE(container);
    if (magic === 0) {
      container += ALIGNMENT;
      continue;
    }
    if (magic !== MAGIC) throw new Error(`no fat binary at byte ${container} of the section`);
    const first = container + section.readUInt16LE(container + 6);
    const end = first + Number(section.readBigUInt64LE(container + 8));
    for (let entry = first; entry < end; ) {
      const code = entry + section.readUInt32LE(entry + 4);
      const next = code + Number(section.readBigUInt64LE(entry + 8));
      const isWanted = section.readUInt32LE(entry + 28) === architecture;
      if (isWanted && (ptx || section.readUInt16LE(entry) !== PTX)) kept += next - code;
      else section.fill(0, code, next);
      entry = next;
    }
    container = end;
  }
  return kept;
}
