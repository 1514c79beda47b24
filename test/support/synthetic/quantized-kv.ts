import type { SyntheticModel } from './llama-graph.ts';

/** How a KV cache of 8 bits rounds: the contract of GroupQueryAttention, without its code. */

/** Above all keys and values of a random network, whose deviation is about 1. */
const LARGEST = 6;
const MAX_LEVEL = { int8: 127, float8e4m3fn: 448 } as const;
/** Fraction bits, and the exponent of the smallest normal value, of float8e4m3fn. */
const FRACTION = 3;
const MIN_EXPONENT = -6;

type KvOptions = Pick<SyntheticModel, 'kv' | 'kvScales' | 'kvHeads' | 'headSize'>;

/** One scale, or one for each channel of all KV heads: different ones, so that a wrong place shows. */
export function kvScales({ kv, kvScales: kind, kvHeads, headSize }: KvOptions): Float32Array {
  if (kv === 'as-precision') return Float32Array.of(1);
  const scale = LARGEST / MAX_LEVEL[kv];
  if (kind === 'per-tensor') return Float32Array.of(scale);
  return Float32Array.from({ length: kvHeads * headSize }, (_, at) => scale * (1 + (at % 8) / 16));
}

/** Rounds a row of keys (rotated) or values of all KV heads. */
export function roundedKv(model: KvOptions): (row: Float64Array) => Float64Array {
  const scales = kvScales(model);
  const { kv } = model;
  if (kv === 'as-precision') return (row) => row;
  const level = kv === 'int8' ? int8Level : float8Level;
  return (row) =>
    row.map((value, at) => {
      const scale = scales[at % scales.length]!;
      return level(value / scale) * scale;
    });
}

/** Halves to even. */
function whole(value: number): number {
  const floor = Math.floor(value);
  const up = value - floor > 0.5 || (value - floor === 0.5 && floor % 2 !== 0);
  return up ? floor + 1 : floor;
}

const int8Level = (value: number): number => Math.min(127, Math.max(-128, whole(value)));

function float8Level(value: number): number {
  const size = Math.abs(value);
  const exponent = Math.max(MIN_EXPONENT, Math.floor(Math.log2(size)));
  const step = 2 ** (exponent - FRACTION);
  return Math.sign(value) * Math.min(MAX_LEVEL.float8e4m3fn, whole(size / step) * step);
}
