import { existsSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import type { ModelConfig } from '../config/model-config.ts';
import { inFile, ModelError } from '../config/model-json.ts';
import { type ImageRecipe, readImageRecipe } from '../config/preprocessor-config.ts';
import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import { ElementType, type GraphTensor } from '../onnx/onnx-graph.ts';
import { appendShape, graphFields, withGraph } from '../onnx/onnx-patch.ts';
import { type GraphFile, loadSession, readGraphFile } from '../ort/graph-file.ts';
import { TokenEmbedder } from '../runner/token-embedder.ts';
import { ImageEncoder } from './image-encoder.ts';

/** The graphs of a model with images, in the layout of transformers.js, read but not loaded. */
export interface VisionPlan {
  readonly tokens: GraphFile;
  readonly images: GraphFile;
  readonly recipe: ImageRecipe;
  /** Width of the vectors of tokens and images. */
  readonly size: number;
  readonly weightBytes: number;
}

interface VisionParts {
  readonly embedder: TokenEmbedder;
  readonly encoder: ImageEncoder;
}

interface Decoder {
  /** Path of its graph inside the model directory. */
  readonly file: string;
  readonly decoder: DecoderInterface;
  readonly config: ModelConfig;
}

const TOKEN_IDS = 'input_ids';
const TOKEN_VECTORS = 'inputs_embeds';
const PIXELS = 'pixel_values';
const IMAGE_VECTORS = 'image_features';

/**
 * Returns null for a decoder that reads token ids.
 * @throws ModelError
 */
export function planVision(directory: string, { file, decoder, config }: Decoder): VisionPlan | null {
  const size = decoder.embeddingSize;
  if (size === null) return null;
  if (config.imageTokenId === null) {
    throw new ModelError(
      `${config.source} has no image_token_id, but ${file} reads ${decoder.tokenInput}; if this is a text model, export it with its embedding (without exclude_embeds), so that it reads input_ids`,
    );
  }
  const ids = { name: TOKEN_IDS, elementType: ElementType.int64, rank: 2 };
  const tokens = readPart(directory, file, 'embed_tokens', ids, { name: TOKEN_VECTORS, size });
  const pixels = { name: PIXELS, elementType: ElementType.float32, rank: 4 };
  const images = readPart(directory, file, 'vision_encoder', pixels, { name: IMAGE_VECTORS, size });
  const weightBytes = tokens.weightBytes + images.weightBytes;
  return { tokens, images, recipe: readImageRecipe(directory), size, weightBytes };
}

interface VisionOptions {
  readonly config: ModelConfig;
  /** Threads of the decoder; the image encoder gets half of them. */
  readonly threads: number;
  /** Tokens of the longest run of the decoder. */
  readonly capacity: number;
}

/** @throws ModelError */
export function openVision(plan: VisionPlan, options: VisionOptions): VisionParts {
  const { tokens, size } = plan;
  const encoder = openEncoder(plan, options);
  try {
    const session = loadSession(tokens, tokens.model, { threads: 1 });
    const { capacity } = options;
    const embedder = new TokenEmbedder(session, { input: TOKEN_IDS, output: TOKEN_VECTORS, size, capacity });
    return { embedder, encoder };
  } catch (error) {
    encoder.dispose();
    throw error;
  }
}

function openEncoder({ images, recipe, size }: VisionPlan, { config, threads }: VisionOptions): ImageEncoder {
  const { file } = images;
  const { fields, shape } = inFile(file, () => appendShape(graphFields(images.model), IMAGE_VECTORS));
  const model = withGraph(images.model, fields);
  const output = images.graph.outputs.find(({ name }) => name === IMAGE_VECTORS)!;
  // Half of the threads, because the decoder runs meanwhile. On 2 cores with 8 layers of 512 in 8 bits and
  // four streams, a step takes 3 ms, 10 ms with one encoder thread and 13 to 19 ms with two. Two threads
  // encode hardly faster than one.
  const session = loadSession(images, model, { threads: Math.max(1, threads >> 1), spins: false });
  try {
    const { height, width } = recipe;
    const outputRank = output.dimensions.length;
    const names = { input: PIXELS, output: IMAGE_VECTORS, shape };
    const encoder = inFile(
      file,
      () => new ImageEncoder(session, { ...names, height, width, outputRank, size }),
    );
    const { imageLength, source } = config;
    if (imageLength !== null && imageLength !== encoder.positions) {
      const encoded = `${file} gives ${encoder.positions} vectors for an image`;
      throw new ModelError(`${encoded}, but ${source} says image_seq_length ${imageLength}`);
    }
    return encoder;
  } catch (error) {
    session.dispose();
    throw error;
  }
}

interface PartInput {
  readonly name: string;
  readonly elementType: number;
  readonly rank: number;
}

interface PartOutput {
  readonly name: string;
  readonly size: number;
}

/** Finds the part with the decoder's precision, or the unquantized one. */
function readPart(
  directory: string,
  decoder: string,
  stem: string,
  input: PartInput,
  output: PartOutput,
): GraphFile {
  const suffix = /(?<=^decoder_model_merged|^model).*$/.exec(basename(decoder, '.onnx'))?.[0] ?? '';
  const names = [suffix, ''].map((ending) => posix.join(dirname(decoder), `${stem}${ending}.onnx`));
  const file = names.find((name) => existsSync(join(directory, name)));
  if (file === undefined) throw new ModelError(`${directory} has no ${names[0]}, which ${decoder} needs`);
  const part = readGraphFile(directory, file);
  inFile(file, () => {
    requireInput(part.graph.inputs, input);
    requireOutput(part.graph.outputs, output);
  });
  return part;
}

function requireInput(inputs: readonly GraphTensor[], { name, elementType, rank }: PartInput): void {
  const tensor = inputs.find((input) => input.name === name);
  if (tensor === undefined) throw new Error(`lacks the input ${name}`);
  const others = inputs.filter((input) => input !== tensor);
  if (others.length > 0) {
    throw new Error(`has unsupported inputs: ${others.map((input) => input.name).join(', ')}`);
  }
  if (tensor.elementType !== elementType || tensor.dimensions.length !== rank) {
    throw new Error(`has an input ${name} of an unsupported type or rank`);
  }
}

/** Requires float32 [batch, positions, size], or [positions, size] for one image. */
function requireOutput(outputs: readonly GraphTensor[], { name, size }: PartOutput): void {
  const tensor = outputs.find((output) => output.name === name);
  if (tensor === undefined) throw new Error(`lacks the output ${name}`);
  if (tensor.elementType !== ElementType.float32)
    throw new Error(`has an output ${name} that is not float32`);
  const width = tensor.dimensions.at(-1);
  if (![2, 3].includes(tensor.dimensions.length) || (typeof width === 'number' && width !== size)) {
    throw new Error(`has an output ${name} that is not [batch, positions, ${size}]`);
  }
}
