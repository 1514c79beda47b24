import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';
import { thisMachine } from '../../origin/model/device/device-choice.ts';
import { sectionOf } from '../../origin/model/device/elf-file.ts';
import { CUDA_PROVIDER } from '../../origin/model/ort/cuda-folder.ts';
import { keepArchitecture } from './fat-binary.ts';

/**
 * Writes the CUDA provider with the code of one architecture only, compressed, for machines that files can hardly reach:
 * `node test/gpu/reduced-provider.ts 90 FILE.zst`.
 */

const LEVEL = 10;

const [architecture, file] = process.argv.slice(2);
if (architecture === undefined || file === undefined)
  throw new Error('usage: node test/gpu/reduced-provider.ts ARCHITECTURE FILE.zst');
const path = join(thisMachine().cuda.folder, CUDA_PROVIDER);
const provider = readFileSync(path);
const section = sectionOf(path, '.nv_fatbin');
if (section === undefined) throw new Error(`${path} has no section .nv_fatbin`);
keepArchitecture(provider.subarray(section.offset, section.offset + section.size), Number(architecture));
const params = {
  [constants.ZSTD_c_compressionLevel]: LEVEL,
  [constants.ZSTD_c_enableLongDistanceMatching]: 1,
};
writeFileSync(file, zstdCompressSync(provider, { params }));
