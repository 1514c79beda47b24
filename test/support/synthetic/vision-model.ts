import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { writeByteTokenizer } from './byte-tokenizer.ts';
import { embedTokensGraph, llamaGraph, type SyntheticModel } from './llama-graph.ts';
import { OnnxWriter } from './onnx-writer.ts';
import { WeightSource } from './random-weights.ts';
import { llamaConfig, TINY_MODEL, writeJson } from './synthetic-model.ts';

/** Sizes of the synthetic encoder: each square patch of a square image becomes one vector. */
export const EYE = { edge: 12, patch: 4, positions: 9, width: 24 } as const;

export const MEAN = [0.48145466, 0.4578275, 0.40821073] as const;
export const DEVIATION = [0.26862954, 0.26130258, 0.27577711] as const;

/** The default id of the image token. */
export const IMAGE_TOKEN = TINY_MODEL.vocabulary + 64 - 3;

/** Like LLaVA's processor: resizes the shortest edge to the encoder's size and crops the centre. */
export const PREPROCESSOR = {
  image_processor_type: 'CLIPImageProcessor',
  do_convert_rgb: true,
  do_resize: true,
  size: { shortest_edge: EYE.edge },
  resample: 3,
  do_center_crop: true,
  crop_size: { height: EYE.edge, width: EYE.edge },
  do_rescale: true,
  rescale_factor: 1 / 255,
  do_normalize: true,
  image_mean: MEAN,
  image_std: DEVIATION,
};

/**
 * Writes a random vision model in transformers.js' layout of LLaVA: separate graphs for decoder, token
 * embedding and image encoder, with tokenizer and configuration.
 */
export function writeVisionModel(directory: string, options: Partial<SyntheticModel> = {}): SyntheticModel {
  const vocabulary = IMAGE_TOKEN + 3;
  const model: SyntheticModel = { ...TINY_MODEL, vocabulary, ...options, embedding: 'outside' };
  mkdirSync(directory, { recursive: true });
  llamaGraph(model).write(directory, 'decoder_model_merged.onnx');
  embedTokensGraph(model).write(directory, 'embed_tokens.onnx');
  visionEncoderGraph(model).write(directory, 'vision_encoder.onnx');
  writeByteTokenizer(directory, vocabulary, ['<image>']);
  writeJson(join(directory, 'preprocessor_config.json'), PREPROCESSOR);
  writeJson(join(directory, 'config.json'), {
    architectures: ['LlavaForConditionalGeneration'],
    model_type: 'llava',
    image_token_index: IMAGE_TOKEN,
    image_seq_length: EYE.positions,
    vision_config: { hidden_size: EYE.width, image_size: EYE.edge, patch_size: EYE.patch },
    text_config: llamaConfig(model),
  });
  return model;
}

/** Builds the image encoder: patches to vectors, tanh, and a projection to the decoder's width. */
function visionEncoderGraph({ hidden, seed }: SyntheticModel): OnnxWriter {
  const { edge, patch, width, positions } = EYE;
  const writer = new OnnxWriter();
  const random = new WeightSource(seed + 1000);
  const weights = (name: string, dimensions: readonly number[], deviation: number) => {
    const count = dimensions.reduce((product, size) => product * size, 1);
    return writer.initializer(name, 'float32', dimensions, random.normal(count, deviation));
  };
  writer.input('pixel_values', 'float32', ['batch_size', 3, edge, edge]);
  writer.output('image_features', 'float32', ['batch_size', 'image_length', hidden]);
  const kernel = weights('patches.weight', [width, 3, patch, patch], 1 / Math.sqrt(3 * patch * patch));
  const bias = weights('patches.bias', [width], 0.5);
  const strides = { attributes: { strides: { ints: [patch, patch] } } };
  const grid = writer.node('Conv', ['pixel_values', kernel, bias], ['grid'], strides);
  const flat = writer.node('Reshape', [grid, writer.integers('flat', [-1, width, positions])], ['columns']);
  const rows = writer.node('Transpose', [flat], ['rows'], { attributes: { perm: { ints: [0, 2, 1] } } });
  const active = writer.node('Tanh', [rows], ['active']);
  writer.node('MatMul', [active, weights('projection.weight', [width, hidden], 1)], ['image_features']);
  return writer;
}
