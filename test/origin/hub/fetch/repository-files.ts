import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { newDirectory } from '../../../support/new-directory.ts';
import { mulberry32 } from '../../../support/random.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';

/** Pseudorandom bytes, so that a shifted or repeated piece changes the checksum. */
export function randomBytes(length: number, seed = 1): Buffer {
  const random = mulberry32(seed);
  return Buffer.from(Uint8Array.from({ length }, () => 256 * random()));
}

/** A repository with the layout of onnx-community and contents that cannot run. */
export function communityFiles(weights: Buffer = randomBytes(300_000)): Record<string, string | Buffer> {
  return {
    '.gitattributes': '*.onnx filter=lfs',
    'README.md': '# A model',
    'config.json': '{"model_type":"llama"}',
    'generation_config.json': '{}',
    'tokenizer.json': JSON.stringify({ model: 'x'.repeat(2000) }),
    'tokenizer_config.json': '{"eos_token":"</s>"}',
    'special_tokens_map.json': '{}',
    'flax_model.msgpack': randomBytes(5000, 2),
    'onnx/model.onnx': randomBytes(4000, 3),
    'onnx/model.onnx_data': randomBytes(9000, 4),
    'onnx/model_q4f16.onnx': randomBytes(2000, 5),
    'onnx/model_q4f16.onnx_data': weights,
    'onnx/model_quantized.onnx': randomBytes(2500, 6),
  };
}

/** A repository with a model that runs, its weights in a separate file. */
export function runnableFiles(
  quantization: SyntheticModel['quantization'] = 'none',
  file = 'model.onnx',
): Record<string, Buffer> {
  const directory = newDirectory();
  const place = { file, dataFile: `${path.basename(file)}_data` };
  const options = { vocabulary: 300, externalData: true, quantization };
  writeByteTokenizer(directory, writeSyntheticModel(directory, options, place).vocabulary);
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  return Object.fromEntries(files.map((one) => [path.relative(directory, one), readFileSync(one)]));
}
