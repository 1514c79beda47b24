import path from 'node:path';
import { PRECISION_SUFFIXES, PRECISIONS, type Precision } from '../model/config/model-files.ts';
import { HubError } from './hub-error.ts';

/** Which files of a repository make one runnable model. */

export interface Variant {
  /** What --variant takes: a precision such as `q4f16`, or the directory of an onnxruntime-genai model. */
  readonly name: string;
  /** The model directory inside the repository; '' = the repository itself. */
  readonly directory: string;
  /** Graphs, their weights and the JSON files that are read with them. */
  readonly files: readonly string[];
}

/** Suffixes of the file names that transformers.js gives, and what the precision is called. */
const PRECISION_BY_SUFFIX: ReadonlyMap<string, string> = new Map(
  Object.entries(PRECISION_SUFFIXES).flatMap(([name, suffixes]) => suffixes.map((suffix) => [suffix, name])),
);

/** Taken in this order when none is asked for: small ones whose rows do not influence each other first. */
const PREFERENCE = ['default', 'q4f16', 'q4', 'fp16', 'fp32', 'q8'];

/** A decoder in one graph, as the origin loads it; the first that is there wins. */
const DECODERS = ['model', 'decoder_model_merged'];
const VISION = ['embed_tokens', 'vision_encoder'];
const GRAPH = new RegExp(
  `^(${[...DECODERS, ...VISION].join('|')})(${[...PRECISION_BY_SUFFIX.keys()].join('|')})\\.onnx$`,
);

const JSON_FILE =
  /^(?:config|generation_config|genai_config|special_tokens_map|preprocessor_config|tokenizer[\w.-]*)\.json$/;

/** Every variant a repository holds, by its list of paths. */
export function variantsOf(files: readonly string[]): Variant[] {
  const inDirectory = Map.groupBy(files, (file) => (file.includes('/') ? path.posix.dirname(file) : ''));
  const generators = [...inDirectory].filter(([, members]) => members.some(isGenaiConfig));
  if (generators.length > 0) {
    return generators
      .filter(([, members]) => members.some((file) => file.endsWith('.onnx')))
      .map(([directory, members]) => builderModel(directory, members));
  }
  const jsons = (inDirectory.get('') ?? []).filter(isJson);
  const found = ['onnx', ''].flatMap((directory) => byPrecision(inDirectory.get(directory) ?? [], jsons));
  return [...Map.groupBy(found, ({ name }) => name).values()].map(([first]) => first!);
}

/** @throws HubError naming the variants there are */
export function chooseVariant(variants: readonly Variant[], repository: string, wanted?: string): Variant {
  const rank = ({ name }: Variant) =>
    PREFERENCE.includes(name) ? PREFERENCE.indexOf(name) : PREFERENCE.length;
  const [best] = variants.toSorted((one, other) => rank(one) - rank(other));
  if (best === undefined) throw new HubError(`${repository} has no ONNX decoder`);
  const chosen = wanted === undefined ? best : variants.find(({ name }) => name === wanted);
  if (chosen !== undefined) return chosen;
  const names = variants.map(({ name }) => name).join(', ');
  throw new HubError(`${repository} has no variant ${wanted}; there are: ${names}`);
}

/** The precision that a variant is, of those its directory may hold side by side; null where the directory is the variant. */
export const precisionOf = ({ name, directory }: Variant): Precision | null =>
  directory === '' ? (PRECISIONS.find((precision) => precision === name) ?? null) : null;

/** What onnxruntime-genai's builder writes: one directory holds one model with everything it needs. */
function builderModel(directory: string, members: readonly string[]): Variant {
  const graphs = members.filter((file) => file.endsWith('.onnx'));
  const files = members.filter(
    (file) => isJson(file) || graphs.includes(file) || graphs.some((graph) => isWeightsOf(graph, file)),
  );
  return { name: directory === '' ? 'default' : directory, directory, files };
}

/** The layout of transformers.js and Optimum: one graph per precision, in `onnx` or at the top. */
function byPrecision(members: readonly string[], jsons: readonly string[]): Variant[] {
  const graphs = members.flatMap((file) => {
    const [, role, suffix] = GRAPH.exec(path.posix.basename(file)) ?? [];
    return role === undefined || suffix === undefined ? [] : [{ file, role, suffix }];
  });
  return [...PRECISION_BY_SUFFIX].flatMap(([suffix, name]) => {
    const graphOf = (role: string, wanted: string) =>
      graphs.find((graph) => graph.role === role && graph.suffix === wanted)?.file;
    const decoder = DECODERS.map((role) => graphOf(role, suffix)).find((file) => file !== undefined);
    if (decoder === undefined) return [];
    const vision = VISION.map((role) => graphOf(role, suffix) ?? graphOf(role, ''));
    const chosen = [decoder, ...vision].filter((file) => file !== undefined);
    const weights = members.filter((file) => chosen.some((graph) => isWeightsOf(graph, file)));
    return [{ name, directory: '', files: [...jsons, ...chosen, ...weights] }];
  });
}

/** `model.onnx_data`, `model.onnx_data_1`, `model.onnx.data`, `model.data` of `model.onnx`. */
function isWeightsOf(graph: string, file: string): boolean {
  const rest = file.startsWith(graph) ? file.slice(graph.length) : null;
  if (rest !== null && /^[._]data(?:_\d+)?$/.test(rest)) return true;
  return file === graph.replace(/\.onnx$/, '.data');
}

const isJson = (file: string): boolean => JSON_FILE.test(path.posix.basename(file));
const isGenaiConfig = (file: string): boolean => path.posix.basename(file) === 'genai_config.json';
