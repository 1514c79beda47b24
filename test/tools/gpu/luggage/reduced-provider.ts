import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sectionOf } from '../../../../origin/model/device/elf-file.ts';
import { CUDA_PROVIDER } from '../../../../origin/model/ort/cuda-folder.ts';

/** Of CUDA's fat binaries: containers of machine code for several architectures, one after the other. */
const MAGIC = 0xba55ed50;

/**
 * Returns the CUDA provider of a folder with the code of one architecture (90 = Hopper) and zeros instead of
 * the others.
 */
export function reducedProvider(folder: string, architecture: number): Buffer {
  const path = join(folder, CUDA_PROVIDER);
  const provider = readFileSync(path);
  const section = sectionOf(path, '.nv_fatbin');
  if (section === undefined) throw new Error(`${path} has no section .nv_fatbin`);
  keepArchitecture(provider.subarray(section.offset, section.offset + section.size), architecture);
  return provider;
}

/**
 * Overwrites the machine code of all architectures but one (90 = Hopper) by zeros, in place.
 * @throws Error if it is none
 */
function keepArchitecture(section: Buffer, architecture: number): void {
  let kept = 0;
  for (let container = 0; container < section.length; ) {
    if (section.readUInt32LE(container) !== MAGIC)
      throw new Error(`no fat binary at byte ${container} of the section`);
    const first = container + section.readUInt16LE(container + 6);
    const end = first + Number(section.readBigUInt64LE(container + 8));
    for (let entry = first; entry < end; ) {
      const code = entry + section.readUInt32LE(entry + 4);
      const next = code + Number(section.readBigUInt64LE(entry + 8));
      if (section.readUInt32LE(entry + 28) === architecture) kept += next - code;
      else section.fill(0, code, next);
      entry = next;
    }
    container = end;
  }
  if (kept === 0) throw new Error(`there is no code for architecture ${architecture}`);
}
