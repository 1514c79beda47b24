import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { zstdDecompressSync } from 'node:zlib';
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

interface Entry {
  readonly isPtx: boolean;
  readonly architecture: number;
  /** With padding behind it. */
  readonly code: Buffer;
  /** Bytes without padding; 0 = the code is not compressed. */
  readonly compressed: number;
}

/** The code that one source file was compiled to. */
interface Container {
  readonly bytes: Buffer;
  readonly entries: readonly Entry[];
}

/**
 * Returns a library with the code of one architecture and zeros instead of the code of others. No address
 * changes, and zeros compress to nothing. Compressed code stays compressed.
 * @throws Error if the library has no code for the architecture
 */
export function reducedLibrary(file: string, { architecture, ptx }: KeptCode): Buffer {
  const { library, containers } = readLibrary(file);
  let kept = 0;
  for (const entry of containers.flatMap(({ entries }) => entries)) {
    if (entry.architecture === architecture && (ptx || !entry.isPtx)) kept += entry.code.length;
    else entry.code.fill(0);
  }
  if (kept === 0) throw new Error(`${file} has no code for architecture ${architecture}`);
  return library;
}

/**
 * Returns a library in which what `compile` returns, a container of machine code, takes the place of each
 * container. No address changes.
 * @param compile takes the PTX of an architecture and the number of its container
 * @throws Error if a container has no PTX of the architecture, or is too small
 */
export async function compiledLibrary(
  file: string,
  architecture: number,
  compile: (ptx: Buffer, index: number) => Promise<Buffer>,
): Promise<Buffer> {
  const { library, containers } = readLibrary(file);
  const open = containers.entries();
  const compileOpen = async () => {
    for (const [index, { bytes, entries }] of open) {
      const entry = entries.find((each) => each.isPtx && each.architecture === architecture);
      if (entry === undefined) throw new Error(`${file}, container ${index}: no PTX for ${architecture}`);
      const compiled = await compile(textOf(entry), index);
      if (compiled.length > bytes.length) throw new Error(`${file}, container ${index}: no room for code`);
      bytes.fill(0).set(compiled);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, compileOpen));
  return library;
}

/** Returns PTX without the zero that ends it. */
function textOf({ code, compressed }: Entry): Buffer {
  const text = compressed > 0 ? zstdDecompressSync(code.subarray(0, compressed)) : code;
  return text.subarray(0, text.indexOf(0));
}

/** @throws Error if something other than padding is between containers */
function readLibrary(file: string): { library: Buffer; containers: readonly Container[] } {
  const library = readFileSync(file);
  const section = sectionOf(file, '.nv_fatbin');
  if (section === undefined) throw new Error(`${file} has no section .nv_fatbin`);
  const code = library.subarray(section.offset, section.offset + section.size);
  const containers: Container[] = [];
  for (let at = 0; at + ALIGNMENT <= code.length; ) {
    const magic = code.readUInt32LE(at);
    if (magic !== 0 && magic !== MAGIC) throw new Error(`no fat binary at byte ${at} of the section`);
    if (magic === 0) {
      at += ALIGNMENT;
      continue;
    }
    const first = code.readUInt16LE(at + 6);
    const bytes = code.subarray(at, at + first + Number(code.readBigUInt64LE(at + 8)));
    containers.push({ bytes, entries: [...entriesOf(bytes.subarray(first))] });
    at += bytes.length;
  }
  return { library, containers };
}

function* entriesOf(bytes: Buffer): Generator<Entry> {
  for (let entry = 0; entry < bytes.length; ) {
    const begin = entry + bytes.readUInt32LE(entry + 4);
    const end = begin + Number(bytes.readBigUInt64LE(entry + 8));
    yield {
      isPtx: bytes.readUInt16LE(entry) === PTX,
      architecture: bytes.readUInt32LE(entry + 28),
      code: bytes.subarray(begin, end),
      compressed: bytes.readUInt32LE(entry + 16),
    };
    entry = end;
  }
}
