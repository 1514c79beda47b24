import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { SubmittedImage, SubmittedPrompt } from '../../../../origin/engine/messages.ts';
import { ImageFeatures } from '../../../../origin/engine/thread/image-features.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { openModel } from '../../../../origin/model/open/open-model.ts';
import { Tokenizer } from '../../../../origin/tokenizer/tokenizer.ts';
import { float64Llama } from '../../../support/float64-llama.ts';
import { float64Encoder } from '../../../support/float64-vision.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import type { SyntheticModel } from '../../../support/synthetic/llama-graph.ts';
import { EYE, IMAGE_TOKEN, writeVisionModel } from '../../../support/synthetic/vision-model.ts';
import { Driver } from './engine-driver.ts';

const PIXELS = 3 * EYE.edge * EYE.edge;

/** Returns pixels that depend on the seed only. */
export const picture = (seed: number): Float32Array<ArrayBuffer> =>
  Float32Array.from({ length: PIXELS }, (_, i) => Math.sin((i + 1) * (seed + 0.37)) * 2);

/** A token id or the pixels of an image. */
export type Part = number | Float32Array<ArrayBuffer>;

export function promptOf(parts: readonly Part[], maxTokens: number): SubmittedPrompt {
  const tokens: number[] = [];
  const images: SubmittedImage[] = [];
  for (const part of parts) {
    if (typeof part === 'number') {
      tokens.push(part);
      continue;
    }
    const key = createHash('sha256').update(part).digest('base64');
    images.push({ at: tokens.length, count: EYE.positions, key, pixels: part });
    tokens.push(...Array<number>(EYE.positions).fill(IMAGE_TOKEN));
  }
  return { tokens: Int32Array.from(tokens), maxTokens, ...(images.length > 0 && { images }) };
}

/** Opens a synthetic vision model with its runner and encoder, and its float64 forward pass. */
export async function visionEngine(
  model: Partial<SyntheticModel> = {},
  { slots = 4, prefillChunk = 16 }: { readonly slots?: number; readonly prefillChunk?: number } = {},
) {
  const directory = newDirectory();
  writeVisionModel(directory, model);
  const { tokenBytes, eosIds } = Tokenizer.of(textsOf(directory));
  const opened = await openModel({ directory, slots, prefillChunk, threads: 1, kvLimitBytes: 2 ** 30 });
  const encoder = opened.images;
  if (encoder === null) throw new Error('the model has no image encoder');
  let encoded = 0;
  const driver = (): Driver => {
    const features = new ImageFeatures((pixels, signal) => {
      encoded++;
      return encoder.encode(pixels, signal);
    });
    return new Driver(opened.runner, {
      tokenBytes,
      eosIds,
      encodeImages: (submission, signal) => features.of(submission, signal),
    });
  };
  const llama = float64Llama.load(join(directory, 'decoder_model_merged.onnx'), [
    join(directory, 'embed_tokens.onnx'),
  ]);
  const encode = float64Encoder(join(directory, 'vision_encoder.onnx'));
  return {
    directory,
    driver,
    /** Runs of the encoder so far. */
    encoded: () => encoded,
    /** Float64 logits of every position. */
    reference: (parts: readonly Part[]): Float64Array[] =>
      llama.forwardVectors(
        parts.flatMap((part) => (typeof part === 'number' ? llama.embed([part]) : encode(part, EYE.edge))),
      ),
    close: () => {
      opened.runner.dispose();
      encoder.dispose();
    },
  };
}
