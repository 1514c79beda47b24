import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { toFloat16 } from '@continuo/shared/float16.ts';

/** Types of activations and KV, and of weights that are not in blocks. */
export type FloatType = 'float32' | 'float16' | 'bfloat16';

/** Values in the type, rounded to nearest even. */
export function floatsOf(type: FloatType, values: Float32Array): Float32Array | Uint16Array {
  if (type === 'float32') return values;
  return type === 'float16' ? toFloat16(values) : toBfloat16(values);
}

/** The upper halves of float32 words. Finite values only. */
function toBfloat16({ buffer, byteOffset, length }: Float32Array): Uint16Array {
  const words = new Uint32Array(buffer, byteOffset, length);
  const halves = new Uint16Array(length);
  for (let i = 0; i < length; i++) {
    const word = words[i]!;
    halves[i] = (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return halves;
}

/** The precision without blocks of a graph with these activations. */
export const EXACT = { float32: 'fp32', float16: 'fp16', bfloat16: 'bf16' } as const;

/** @throws ModelError for a part of models whose operators CUDA may not have in bfloat16 */
export function requireHalfOrSingle(type: FloatType, part: string): void {
  if (type === 'bfloat16') throw new ModelError(`bf16 is not for models with ${part}; build fp16`);
}
