import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { newDirectory } from '../../../support/new-directory.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import { safetensorsBytes, writeLlama } from '../../export/written-checkpoint.ts';

/** A directory with a random Llama as safetensors and its tokenizer. */
export function weightsDirectory(): string {
  const { directory } = writeLlama(newDirectory(), { vocabulary: 300 });
  mkdirSync(directory, { recursive: true });
  writeByteTokenizer(directory, 300);
  return directory;
}

/** The files of a repository that publishes such a model, beside weights of other tools. */
export function weightsFiles(): Record<string, Buffer> {
  const others = ['README.md', 'pytorch_model.bin', 'consolidated.safetensors'];
  const contents = others.map((file) => [file, Buffer.from(file)] as const);
  return { ...filesIn(weightsDirectory()), ...Object.fromEntries(contents) };
}

const filesIn = (directory: string): Record<string, Buffer> =>
  Object.fromEntries(readdirSync(directory).map((file) => [file, readFileSync(path.join(directory, file))]));

/** The files of a repository whose weights are two shards of these names. */
export function shardedFiles(names: readonly [string, string]): Record<string, Buffer> {
  const { directory, tensors } = writeLlama(newDirectory(), { vocabulary: 300 });
  writeByteTokenizer(directory, 300);
  const { 'model.safetensors': _, ...others } = filesIn(directory);
  const all = Object.entries(tensors);
  const parts = [all.slice(0, 5), all.slice(5)];
  const places = parts.flatMap((part, index) => part.map(([name]) => [name, names[index]] as const));
  const index = JSON.stringify({ weight_map: Object.fromEntries(places) });
  const shards = parts.map((part, index) => [
    names[index],
    Buffer.from(safetensorsBytes(Object.fromEntries(part))),
  ]);
  return { ...others, ...Object.fromEntries(shards), 'model.safetensors.index.json': Buffer.from(index) };
}
