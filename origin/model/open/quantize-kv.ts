import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { FLOAT16_VALUES } from '@continuo/shared/float16.ts';
import type { DeviceSettings } from '../config/device.ts';
import { ModelError } from '../config/model-json.ts';
import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import { withQuantizedKv } from '../onnx/quantized-kv.ts';
import { openModel } from './open-model.ts';
import { planModel } from './plan-model.ts';

const NEVER = new AbortController().signal;
const MAX_TOKENS = 1024;
const MAX_LEVEL = 127;
/** Other texts have larger values: docs/decisions/0053-bfloat16-and-kv-in-8-bits.md has the figures. */
const HEADROOM = 2;
/** Of the largest value of any channel: one that the text leaves at 0 still needs levels. */
const LEAST_SHARE = 2 ** -7;

/**
 * Rewrites the graph of a built model so that its KV cache is int8, with a scale for each channel from the
 * largest values of a sample.
 * @param sample tokens of a text; up to 1,024 are computed on the device
 * @throws ModelError with one line if the model has no KV cache to quantize
 */
export async function quantizeKv(
  directory: string,
  sample: readonly number[],
  device: DeviceSettings,
): Promise<void> {
  const { decoder, file } = planModel({ directory, slots: 1, contextLength: 1, kvLimitBytes: null, device });
  if (decoder.kv.length === 0 || decoder.cache !== 'in-place')
    throw new ModelError(`${file} has no GroupQueryAttention, so its KV cannot be quantized`);
  const tokens = Int32Array.from(sample.slice(0, Math.min(MAX_TOKENS, decoder.maxPositions - 1)));
  const largest = await largestValues(directory, tokens, decoder, device);
  const kv = decoder.kv.map(({ past, present, shared, heads }, index) => {
    const least = Math.max(...largest[index]!) * LEAST_SHARE;
    const scales = largest[index]!.map((value) => (HEADROOM * Math.max(value, least)) / MAX_LEVEL);
    return { names: [past, present, ...shared], heads, scales };
  });
  const graph = path.join(directory, file);
  writeFileSync(graph, withQuantizedKv(readFileSync(graph), kv));
}

/** Returns the largest absolute value of each channel [heads · head size], by KV tensor. */
async function largestValues(
  directory: string,
  tokens: Int32Array,
  decoder: DecoderInterface,
  device: DeviceSettings,
): Promise<Float32Array[]> {
  const contextLength = tokens.length + 1;
  const { runner } = await openModel({
    directory,
    slots: 1,
    contextLength,
    threads: 2,
    kvLimitBytes: null,
    device,
  });
  try {
    const { prefillChunk } = runner.shape;
    const logitsAt = new Int32Array();
    for (let start = 0; start < tokens.length; start += prefillChunk) {
      const chunk = tokens.slice(start, start + prefillChunk);
      await runner.prefill({ slot: 0, start, tokens: chunk, logitsAt }, NEVER);
    }
    const bytes = new Uint8Array(tokens.length * runner.kvBytes.positionBytes);
    runner.kvBytes.read(0, 0, tokens.length, bytes);
    return largestByChannel(floatsOf(decoder.kvType, bytes), decoder, tokens.length);
  } finally {
    runner.dispose();
  }
}

/** @param values heads · [positions, head size] of each tensor */
function largestByChannel(values: Float32Array, { kv }: DecoderInterface, positions: number): Float32Array[] {
  let at = 0;
  return kv.map(({ heads, headSize }) => {
    const largest = new Float32Array(heads * headSize);
    for (let head = 0; head < heads; head++) {
      for (let i = 0; i < positions * headSize; i++, at++) {
        const channel = head * headSize + (i % headSize);
        largest[channel] = Math.max(largest[channel]!, Math.abs(values[at]!));
      }
    }
    return largest;
  });
}

function floatsOf(type: DecoderInterface['kvType'], { buffer }: Uint8Array<ArrayBuffer>): Float32Array {
  switch (type) {
    case 'float32':
      return new Float32Array(buffer);
    case 'float16':
      return Float32Array.from(new Uint16Array(buffer), (half) => FLOAT16_VALUES[half]!);
    case 'bfloat16':
      return new Float32Array(Uint32Array.from(new Uint16Array(buffer), (half) => half << 16).buffer);
    default:
      throw new ModelError(`KV in ${type} is quantized already`);
  }
}
