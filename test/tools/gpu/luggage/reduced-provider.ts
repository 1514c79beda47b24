import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sectionOf } from '../../../../origin/model/device/elf-file.ts';
import { CUDA_PROVIDER } from '../../../../origin/model/ort/cuda-folder.ts';
import { keepArchitecture } from './fat-binary.ts';

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
