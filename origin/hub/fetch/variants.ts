import path from 'node:path';
import { SAFETENSORS, SAFETENSORS_INDEX } from '@continuo/export/checkpoint/safetensors.ts';
import { words } from '@continuo/shared/field-names.ts';
import {
  DECODER_STEMS,
  PRECISION_SUFFIXES,
  PRECISIONS,
  type Precision,
} from '../../model/config/model-files.ts';
import { HubError } from './hub-error.ts';
import { missingWeights } from './missing-weights.ts';

/** ONNX graphs are served as they are. A model is built from weights in the other formats. */
export type ModelFormat = 'onnx' | 'safetensors' | 'gguf';

/** The files of a repository that make one model. */
export interface Variant {
  readonly format: ModelFormat;
  /**
   * Value of --variant: a precision such as `q4f16`, the directory of an onnxruntime-genai model,
   * `safetensors`, or the format in a GGUF file's name, such as `Q4_K_M`, else that name.
   */
  readonly name: string;
  /** The model directory inside the repository; '' is the repository itself. */
  readonly directory: string;
  /** Graphs or weights, and the JSON files of the model. */
  readonly files: readonly string[];
}

/** Suffixes of transformers.js file names and their precisions. */
const PRECISION_BY_SUFFIX: ReadonlyMap<string, string> = new Map(
  Object.entries(PRECISION_SUFFIXES).flatMap(([name, suffixes]) => suffixes.map((suffix) => [suffix, name])),
);

/**
 * Order of choice without --variant. First come weights as published, from which the best graph is built.
 * Small graphs follow, among them those with batch-invariant output, then GGUF files whose
 * blocks lose nothing.
 */
const PREFERENCE = words(`
  default safetensors q4f16 q4 fp16 fp32 q8 Q8_0 Q6_K Q5_K_M Q4_K_M Q4_0 MXFP4 F16 BF16
`);

const VISION = ['embed_tokens', 'vision_encoder'];
const GRAPH = new RegExp(
  `^(${[...DECODER_STEMS, ...VISION].join('|')})(${[...PRECISION_BY_SUFFIX.keys()].join('|')})\\.onnx$`,
);

/** A GGUF file without the number of its part. Files for images and importance matrices are no models. */
const GGUF = /^(?!.*(?:mmproj|imatrix))(.*?)(?:-\d{5}-of-\d{5})?\.gguf$/i;
/** The format at the end of a GGUF file's name. */
const GGUF_FORMAT = /(?:^|[-._])(I?Q\d\w*|TQ\d\w*|MXFP4\w*|B?F16|F32)$/i;

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
  const graphFiles = ['onnx', ''].flatMap((directory) =>
    precisionVariants(inDirectory.get(directory) ?? [], jsons),
  );
  const graphs = [...Map.groupBy(graphFiles, ({ name }) => name).values()].map(([first]) => first!);
  return [...graphs, ...safetensorsVariant(inDirectory.get('') ?? [], jsons), ...ggufVariants(files)];
}

/** Shards have any names: the index has them, and the pull reads it. */
function safetensorsVariant(members: readonly string[], jsons: readonly string[]): Variant[] {
  const weights = members.filter((file) => file === SAFETENSORS || file === SAFETENSORS_INDEX);
  if (weights.length === 0 || !members.includes('config.json')) return [];
  return [{ format: 'safetensors', name: 'safetensors', directory: '', files: [...jsons, ...weights] }];
}

/** One variant per file, or per split file. Named by format, else path; files at the top first. */
function ggufVariants(files: readonly string[]): Variant[] {
  const isModel = (file: string) => GGUF.test(path.posix.basename(file));
  const stemOf = (file: string) =>
    path.posix.join(path.posix.dirname(file), GGUF.exec(path.posix.basename(file))![1]!);
  const byStem = Map.groupBy(files.filter(isModel), stemOf);
  const depth = (stem: string) => stem.split('/').length;
  const names = new Set<string>();
  return [...byStem]
    .toSorted(([left], [right]) => depth(left) - depth(right))
    .map(([stem, members]) => {
      const format = GGUF_FORMAT.exec(stem)?.[1]?.toUpperCase();
      const name = format === undefined || names.has(format) ? stem : format;
      names.add(name);
      const directory = path.posix.dirname(stem);
      return {
        format: 'gguf',
        name,
        directory: directory === '.' ? '' : directory,
        files: members.toSorted(),
      };
    });
}

/**
 * Chooses among the variants of a repository's list of paths.
 * @param wanted Name of a variant, or one of its files; absent: the preferred variant
 * @throws HubError with the names of the existing variants
 */
export function chooseVariant(files: readonly string[], repository: string, wanted?: string): Variant {
  const rank = ({ name }: Variant) =>
    PREFERENCE.includes(name) ? PREFERENCE.indexOf(name) : PREFERENCE.length;
  const variants = variantsOf(files).toSorted((left, right) => rank(left) - rank(right));
  const [best] = variants;
  if (best === undefined)
    throw new HubError(`${repository} ${missingWeights(files, foldersWithModels(files))}`);
  if (wanted === undefined) return best;
  const chosen =
    variants.find(({ name }) => name.toLowerCase() === wanted.toLowerCase()) ??
    variants.find((variant) => variant.files.includes(wanted));
  if (chosen !== undefined) return chosen;
  const names = variants.map(({ name }) => name).join(', ');
  throw new HubError(`${repository} has no variant ${wanted}; available: ${names}`);
}

/** Folders that would have a variant if they were repositories. */
function foldersWithModels(files: readonly string[]): string[] {
  const byFolder = Map.groupBy(files, (file) => path.posix.dirname(file));
  byFolder.delete('.');
  return [...byFolder]
    .filter(([, members]) => variantsOf(members.map((file) => path.posix.basename(file))).length > 0)
    .map(([folder]) => folder);
}

/** Returns the precision of a variant; null if its directory cannot hold other precisions. */
export const precisionOf = ({ format, name, directory }: Variant): Precision | null =>
  format === 'onnx' && directory === '' ? (PRECISIONS.find((precision) => precision === name) ?? null) : null;

/** Layout of onnxruntime-genai's model builder: one directory per model. */
function genaiVariant(directory: string, members: readonly string[]): Variant {
  const graphs = members.filter((file) => file.endsWith('.onnx'));
  const files = members.filter(
    (file) => isJson(file) || graphs.includes(file) || graphs.some((graph) => isWeightsOf(graph, file)),
  );
  return { format: 'onnx', name: directory === '' ? 'default' : directory, directory, files };
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
    const decoder = DECODER_STEMS.map((role) => graphOf(role, suffix)).find((file) => file !== undefined);
    if (decoder === undefined) return [];
    const vision = VISION.map((role) => graphOf(role, suffix) ?? graphOf(role, ''));
    const chosen = [decoder, ...vision].filter((file) => file !== undefined);
    const weights = members.filter((file) => chosen.some((graph) => isWeightsOf(graph, file)));
    return [{ format: 'onnx', name, directory: '', files: [...jsons, ...chosen, ...weights] }];
  });
}

/** Matches `model.onnx_data`, `model.onnx_data_1`, `model.onnx.data` and `model.data` for `model.onnx`. */
function isWeightsOf(graph: string, file: string): boolean {
  const rest = file.startsWith(graph) ? file.slice(graph.length) : '';
  return /^[._]data(?:_\d+)?$/.test(rest) || file === graph.replace(/\.onnx$/, '.data');
}

const isJson = (file: string): boolean => JSON_FILE.test(path.posix.basename(file));
const isGenaiConfig = (file: string): boolean => path.posix.basename(file) === 'genai_config.json';
