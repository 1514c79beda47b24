import { createHash, type Hash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { filesOf } from '../config/model-files.ts';
import { PROVENANCE_FILE } from '../config/provenance.ts';
import { withBranches } from '../onnx/onnx-graph.ts';
import { ONNX_RUNTIME_VERSION } from '../ort/cuda-folder.ts';
import type { GraphFile } from '../ort/graph-file.ts';
import type { ModelPlan } from './plan-model.ts';

/** Files up to this size are read as a whole. All of a large model would take minutes. */
const WHOLE_BYTES = 256 * 2 ** 20;
/** Of larger files, so many bytes are read at the start of each stride, and at the end. */
const SAMPLE_BYTES = 2 ** 16;
const STRIDE_BYTES = 2 ** 20;

/** A hash of what a model computes with: graphs, weights, JSON files, and the runtime's version. */
export function contentHash(directory: string, { file, graph, vision }: ModelPlan): string {
  const hash = createHash('sha256').update(ONNX_RUNTIME_VERSION);
  const graphs = [{ file, graph }, ...(vision === null ? [] : [vision.tokens, vision.images])];
  const weights = graphs.flatMap((graph) => [graph.file, ...externalFiles(graph)]);
  const settings = filesOf(directory)
    .map(([name]) => name)
    .filter((name) => /^[^/\\]+\.json$/.test(name) && name !== PROVENANCE_FILE);
  for (const name of [...new Set(weights), ...settings]) addFile(hash, join(directory, name));
  return hash.digest('hex');
}

function externalFiles({ file, graph }: Pick<GraphFile, 'file' | 'graph'>): string[] {
  const names = [...withBranches(graph)].flatMap(({ initializers }) =>
    [...initializers.values()].flatMap(({ external }) => external?.file ?? []),
  );
  return [...new Set(names)].toSorted().map((name) => join(dirname(file), name));
}

function addFile(hash: Hash, path: string): void {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    hash.update(`${size} `);
    const isWhole = size <= WHOLE_BYTES;
    const bytes = Buffer.allocUnsafe(isWhole ? STRIDE_BYTES : SAMPLE_BYTES);
    const add = (at: number) => hash.update(bytes.subarray(0, readSync(file, bytes, 0, bytes.length, at)));
    for (let at = 0; at < size; at += STRIDE_BYTES) add(at);
    if (!isWhole) add(size - SAMPLE_BYTES);
  } finally {
    closeSync(file);
  }
}
