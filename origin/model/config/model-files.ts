import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { DEFAULT_NAMES, type DecoderNames } from './decoder-names.ts';
import { GENAI_CONFIG, genaiNames, readGenaiConfig } from './genai-config.ts';
import { textsOf } from './model-directory.ts';
import { ModelError } from './model-json.ts';

/**
 * The precisions that a directory may contain, in order of preference on the CPU: 4 bits are fastest, float16
 * halves the memory. The last ones scale activations over all rows of a run and must therefore run row by
 * row.
 */
export const PRECISIONS = ['q4', 'q4f16', 'fp16', 'fp32', 'bnb4', 'q8', 'int8', 'uint8'] as const;
export type Precision = (typeof PRECISIONS)[number];

/** Names of the precisions that graphs are built in. `q4` is short for `int4`, and so on. */
export const BUILT_PRECISIONS = [
  ...(['fp32', 'fp16', 'bf16', 'int8', 'q8', 'int8a8', 'q8a8', 'int4', 'q4'] as const),
  ...(['int8f32', 'q8f32', 'int4f32', 'q4f32'] as const),
] as const;

/** File name suffixes of transformers.js. */
export const PRECISION_SUFFIXES: Readonly<Record<Precision, readonly string[]>> = {
  q4: ['_q4'],
  q4f16: ['_q4f16'],
  fp16: ['_fp16'],
  fp32: [''],
  bnb4: ['_bnb4'],
  q8: ['_q8', '_quantized'],
  int8: ['_int8'],
  uint8: ['_uint8'],
};
const FOLDERS = ['', 'onnx'];
/** Names of decoders in one graph, in the order in which they are looked for. */
export const DECODER_STEMS: readonly string[] = ['model', 'decoder_model_merged'];

interface DecoderFile {
  /** Path of the graph inside the model directory, such as `onnx/model_q4.onnx`. */
  readonly file: string;
  readonly names: DecoderNames;
}

/**
 * Returns the graph to load: the requested precision, else the graph named by genai_config.json, else the
 * first of PRECISIONS that exists.
 * @throws ModelError that lists what exists instead
 */
export function findDecoder(directory: string, precision?: Precision): DecoderFile {
  const genai = precision === undefined ? readGenaiConfig(textsOf(directory)) : undefined;
  if (genai !== undefined) return builderDecoder(directory, genai.decoder.filename, genaiNames(genai));
  for (const wanted of precision === undefined ? PRECISIONS : [precision]) {
    const file = candidates(wanted).find((name) => existsSync(join(directory, name)));
    if (file !== undefined) return { file, names: DEFAULT_NAMES };
  }
  const available = PRECISIONS.filter((variant) =>
    candidates(variant).some((name) => existsSync(join(directory, name))),
  );
  if (available.length > 0)
    throw new ModelError(`${directory} has no variant ${precision}; available: ${available.join(', ')}`);
  throw new ModelError(
    `${directory} has no model.onnx, model_q4.onnx or similar, nor has its folder onnx${others(directory)}`,
  );
}

function builderDecoder(directory: string, file: string, names: DecoderNames): DecoderFile {
  if (posix.normalize(file).startsWith('..') || posix.isAbsolute(file)) {
    throw new ModelError(`${GENAI_CONFIG} names the graph ${file}, outside its directory`);
  }
  if (!existsSync(join(directory, file))) {
    throw new ModelError(`${GENAI_CONFIG} names the graph ${file}, which is missing in ${directory}`);
  }
  return { file, names };
}

function candidates(precision: Precision): string[] {
  return DECODER_STEMS.flatMap((stem) =>
    FOLDERS.flatMap((folder) =>
      PRECISION_SUFFIXES[precision].map((suffix) => posix.join(folder, `${stem}${suffix}.onnx`)),
    ),
  );
}

/** Lists graphs with other names, which may be mistaken for a decoder, or else weights without a graph. */
function others(directory: string): string {
  const files = FOLDERS.filter((folder) => existsSync(join(directory, folder))).flatMap((folder) =>
    readdirSync(join(directory, folder)).map((name) => posix.join(folder, name)),
  );
  const graphs = files.filter((name) => name.endsWith('.onnx'));
  if (graphs.length > 0) return `; found: ${graphs.join(', ')}`;
  const weights = files.find((name) => /\.(?:safetensors|gguf)$/i.test(name));
  if (weights === undefined) return '';
  const source = weights.endsWith('.safetensors') ? directory : join(directory, weights);
  return `; build one from ${weights}: continuo model build ${source}`;
}

/** Returns name, size and modification time of every file of a model without broken links. */
export function filesOf(directory: string): (readonly [string, number, number])[] {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).toSorted();
  return names.flatMap((name) => {
    const stats = statSync(join(directory, name), { throwIfNoEntry: false });
    return stats === undefined ? [] : [[name, stats.size, stats.mtimeMs] as const];
  });
}
