import path from 'node:path';
import { PRECISION_SUFFIXES, PRECISIONS, type Precision } from '../model/config/model-files.ts';
import { HubError } from './hub-error.ts';

/** The files of a repository that make one runnable model. */
export interface Variant {
  /** Value of --variant: a precision such as `q4f16`, or the directory of an onnxruntime-genai model. */
  readonly name: string;
  /** The model directory inside the repository; '' is the repository itself. */
  readonly directory: string;
  /** Graphs, their weights and the JSON files of the model. */
  readonly files: readonly string[];
}

/** Suffixes of transformers.js file names and their precisions. */
const PRECISION_BY_SUFFIX: ReadonlyMap<string, string> = new Map(
  Object.entries(PRECISION_SUFFIXES).flatMap(([name, suffixes]) => suffixes.map((suffix) => [suffix, name])),
);

/** Order of choice without --variant: small files first, among them those with batch-invariant output. */
const PREFERENCE = ['default', 'q4f16', 'q4', 'fp16', 'fp32', 'q8'];

/** Decoders in one graph, in the order in which the origin looks for them. */
const DECODERS = ['model', 'decoder_model_merged'];
const VISION = ['embed_tokens', 'vision_encoder'];
const GRAPH = new RegExp(
  `^(${[...DECODERS, ...VISION].join('|')})(${[...PRECISION_BY_SUFFIX.keys()].join('|')})\\.onnx$`,
);

const JSON_FILE =
  /^(?:config|generation_config|genai_config|special_tokens_map|preprocessor_config|tokenizer[\w.-]*)\.json$/;

/** Finds every variant in a repository's list of paths. */
export function variantsOf(files: readonly string[]): Variant[] {
  const inDirectory = Map.groupBy(files, (file) => (file.includes('/') ? path.posix.dirname(file) : ''));
  const genaiModels = [...inDirectory].filter(([, members]) => members.some(isGenaiConfig));
  if (genaiModels.length > 0) {
    return genaiModels
      .filter(([, members]) => members.some((file) => file.endsWith('.onnx')))
      .map(([directory, members]) => genaiVariant(directory, members));
  }
  const jsons = (inDirectory.get('') ?? []).filter(isJson);
  const found = ['onnx', ''].flatMap((directory) =>
    precisionVariants(inDirectory.get(directory) ?? [], jsons),
  );
  return [...Map.groupBy(found, ({ name }) => name).values()].map(([first]) => first!);
}

/** @param wanted Absent: the preferred variant. @throws HubError with the names of the existing variants */
export function chooseVariant(variants: readonly Variant[], repository: string, wanted?: string): Variant {
  const rank = ({ name }: Variant) =>
    PREFERENCE.includes(name) ? PREFERENCE.indexOf(name) : PREFERENCE.length;
  const [best] = variants.toSorted((one, other) => rank(one) - rank(other));
  if (best === undefined) throw new HubError(`${repository} has no ONNX decoder`);
  const chosen = wanted === undefined ? best : variants.find(({ name }) => name === wanted);
  if (chosen !== undefined) return chosen;
  const names = variants.map(({ name }) => name).join(', ');
  throw new HubError(`${repository} has no variant ${wanted}; available: ${names}`);
}

/** Returns the precision of a variant; null if its directory cannot hold other precisions. */
export const precisionOf = ({ name, directory }: Variant): Precision | null =>
  directory === '' ? (PRECISIONS.find((precision) => precision === name) ?? null) : null;

/** Layout of onnxruntime-genai's model builder: one directory per model. */
function genaiVariant(directory: string, members: readonly string[]): Variant {
  const graphs = members.filter((file) => file.endsWith('.onnx'));
  const files = members.filter(
    (file) => isJson(file) || graphs.includes(file) || graphs.some((graph) => isWeightsOf(graph, file)),
  );
  return { name: directory === '' ? 'default' : directory, directory, files };
}

/** Layout of transformers.js and Optimum: one graph per precision, in `onnx` or at the top. */
function precisionVariants(members: readonly string[], jsons: readonly string[]): Variant[] {
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

/** Matches `model.onnx_data`, `model.onnx_data_1`, `model.onnx.data` and `model.data` for `model.onnx`. */
function isWeightsOf(graph: string, file: string): boolean {
  const rest = file.startsWith(graph) ? file.slice(graph.length) : '';
  return /^[._]data(?:_\d+)?$/.test(rest) || file === graph.replace(/\.onnx$/, '.data');
}

const isJson = (file: string): boolean => JSON_FILE.test(path.posix.basename(file));
const isGenaiConfig = (file: string): boolean => path.posix.basename(file) === 'genai_config.json';
