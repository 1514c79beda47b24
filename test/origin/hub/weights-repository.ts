import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { writeLlama } from '../export/written-checkpoint.ts';
import { emptyDirectory } from './repository-files.ts';

/** A directory with a random Llama as safetensors and its tokenizer. */
export function weightsDirectory(): string {
  const { directory } = writeLlama(emptyDirectory(), { vocabulary: 300 });
  mkdirSync(directory, { recursive: true });
  writeByteTokenizer(directory, 300);
  return directory;
}

/** The files of a repository that publishes such a model, beside weights of other tools. */
export function weightsFiles(): Record<string, Buffer> {
  const directory = weightsDirectory();
  const own = readdirSync(directory).map((file) => [file, readFileSync(path.join(directory, file))] as const);
  const others = ['README.md', 'pytorch_model.bin', 'consolidated.safetensors'];
  return Object.fromEntries([...own, ...others.map((file) => [file, Buffer.from(file)] as const)]);
}
