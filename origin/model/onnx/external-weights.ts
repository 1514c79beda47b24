import { realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { errorCode } from '@continuo/shared/error-details.ts';
import { ELEMENT_BITS, type GraphInitializer, type OnnxGraph, withBranches } from './onnx-graph.ts';

/**
 * Checks that all external weight files of a graph exist and have the size that the graph needs. ONNX Runtime
 * also finds most faults, but without naming the file.
 * @param modelFile path of the graph
 * @returns total bytes of those files
 * @throws Error that completes "model.onnx …"
 */
export function requireExternalWeights(modelFile: string, graph: OnnxGraph): number {
  const folder = dirname(modelFile);
  const sizes = new Map<string, number>();
  for (const { initializers } of withBranches(graph)) {
    for (const initializer of initializers.values()) {
      if (initializer.external === null) continue;
      const { file } = initializer.external;
      const size = sizes.get(file) ?? sizeInside(folder, file);
      sizes.set(file, size);
      requireRoom(initializer, size);
    }
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

function sizeInside(folder: string, file: string): number {
  const path = join(folder, file);
  if (isOutside(folder, path)) throw new Error(`keeps its weights in ${file}, outside its directory`);
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (error) {
    const code = errorCode(error);
    const fault = code === 'ENOENT' ? `which is missing in ${folder}` : `which cannot be read: ${code}`;
    throw new Error(`keeps its weights in ${file}, ${fault}`);
  }
  if (isOutside(realpathSync(folder), realpathSync(path))) {
    throw new Error(
      `keeps its weights in ${file}, a link out of its directory; ONNX Runtime accepts only files and hard links`,
    );
  }
  return stats.size;
}

function isOutside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === '..' || way.startsWith('../') || isAbsolute(way);
}

function requireRoom({ name, elementType, dimensions, external }: GraphInitializer, size: number): void {
  const { file, offset, length } = external!;
  const bits = ELEMENT_BITS.get(elementType);
  if (bits === undefined) throw new Error(`has weights ${name} of unknown type ${elementType}`);
  const bytes = Math.ceil((dimensions.reduce((product, count) => product * count, 1) * bits) / 8);
  if (length !== null && length !== bytes) {
    throw new Error(`says that ${name} takes ${length} bytes of ${file}, but its dimensions take ${bytes}`);
  }
  if (offset + bytes > size) {
    throw new Error(`needs ${offset + bytes} bytes of ${file} for ${name}, but the file has ${size}`);
  }
}
