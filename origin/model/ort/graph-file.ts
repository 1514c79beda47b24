import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorMessage, oneLine } from '@continuo/shared/error-details.ts';
import { inFile, ModelError } from '../config/model-json.ts';
import { requireExternalWeights } from '../onnx/external-weights.ts';
import { type OnnxGraph, readGraph } from '../onnx/onnx-graph.ts';
import { apiInTurns } from './api-in-turns.ts';
import { withHugePages } from './huge-pages.ts';
import { openOrtApi } from './ort-capi.ts';
import { OrtSession, type SessionOptions } from './ort-session.ts';

/** A graph of a model directory, read but not loaded into ONNX Runtime. */
export interface GraphFile {
  /** Path inside the model directory. */
  readonly file: string;
  /** Folder of its external weights. */
  readonly folder: string;
  readonly model: Uint8Array;
  readonly graph: OnnxGraph;
  /** Bytes of the graph and its external weights. */
  readonly weightBytes: number;
}

/** @throws ModelError that names the file */
export function readGraphFile(directory: string, file: string): GraphFile {
  const path = join(directory, file);
  const model = readModelFile(path, file);
  const graph = inFile(file, () => readGraph(model));
  const externalBytes = inFile(file, () => requireExternalWeights(path, graph));
  return { file, folder: dirname(path), model, graph, weightBytes: model.length + externalBytes };
}

function readModelFile(path: string, file: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ModelError(`${file} cannot be read: ${errorMessage(error)}`);
  }
}

/** @param model the file's content, patched or not */
export function loadSession(
  { file, folder }: GraphFile,
  model: Uint8Array,
  options: Omit<SessionOptions, 'directory'>,
): OrtSession {
  const api = openOrtApi();
  const used = options.turns === undefined ? api : apiInTurns(api, options.turns);
  try {
    const load = () => new OrtSession(used, model, { ...options, directory: folder });
    return options.device === undefined || options.device.provider === 'cpu' ? withHugePages(load) : load();
  } catch (error) {
    throw new ModelError(`ONNX Runtime cannot load ${file}: ${oneLine(error)}`, { cause: error });
  }
}
