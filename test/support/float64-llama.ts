import { type Linear, readWeights, type Weights } from './float64-weights.ts';

/**
 * A Llama forward pass in float64, as the reference for ONNX graphs. It is written from the architecture, not
 * from a graph, and shares no code with the origin.
 */

/**
 * Deliberate faults, so that a test can prove that it detects them, and variants of rounding and attention.
 */
export interface Variation {
  /** Added to the positions of queries only. A shift of both queries and keys would change nothing. */
  readonly queryShift?: number;
  /** Rotates neighbours (2i, 2i + 1) instead of the halves (i, i + head / 2). */
  readonly rotateNeighbours?: boolean;
  /** Assigns key-value heads round robin instead of to groups of adjacent heads. */
  readonly alternateKvHeads?: boolean;
  /** Leaves out the norm before the attention of this layer. */
  readonly withoutNorm?: number;
  /** Replaces the epsilon of every norm. */
  readonly epsilon?: number;
  /** Rounds the input of a linear map to 8 bits per 32 values, as ONNX Runtime's accuracy level 4 does. */
  readonly roundActivations?: boolean;
  /** Rounds the input of a linear map to 8 bits per position (DynamicQuantizeLinear, run of one). */
  readonly roundRows?: boolean;
  /** Positions that a token attends to, itself included. */
  readonly window?: number;
  /** Rounds the rotated keys, and the values, of all KV heads at a position. */
  readonly roundKv?: (row: Float64Array) => Float64Array;
}

/** Values of all positions: one Float64Array [channels] each. */
type Rows = readonly Float64Array[];

const ROUNDING_BLOCK = 32;

function rounded(row: Float64Array): Float64Array {
  const result = new Float64Array(row.length);
  for (let start = 0; start < row.length; start += ROUNDING_BLOCK) {
    const block = row.subarray(start, start + ROUNDING_BLOCK);
    // The kernel computes its scale in single precision, and the scale decides how a value is rounded.
    const scale = Math.fround(block.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127);
    for (const [i, value] of block.entries()) result[start + i] = scale && Math.round(value / scale) * scale;
  }
  return result;
}

/** DynamicQuantizeLinear: scale = (max − min) / 255 over a range that holds 0, halves rounded to even. */
function roundedRow(row: Float64Array): Float64Array {
  const most = Math.max(0, ...row);
  const least = Math.min(0, ...row);
  const scale = Math.fround((most - least) / 255);
  const zero = evenRound(-least / scale);
  return row.map((value) => {
    const level = Math.min(255, Math.max(0, evenRound(value / scale) + zero));
    return (level - zero) * scale;
  });
}

function evenRound(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

function apply({ outputs, inputs, weight }: Linear, rows: Rows): Float64Array[] {
  const results = rows.map(() => new Float64Array(outputs));
  for (let output = 0; output < outputs; output++) {
    // One row of weights serves all positions while it is in the cache.
    const base = output * inputs;
    for (const [position, row] of rows.entries()) {
      // Four independent sums, because each addition to one sum would wait for the previous one.
      let [a, b, c, d] = [0, 0, 0, 0];
      for (let i = 0; i < inputs; i += 4) {
        a += row[i]! * weight[base + i]!;
        b += row[i + 1]! * weight[base + i + 1]!;
        c += row[i + 2]! * weight[base + i + 2]!;
        d += row[i + 3]! * weight[base + i + 3]!;
      }
      results[position]![output] = a + b + c + d;
    }
  }
  return results;
}

function normalise(row: Float64Array, weight: Float64Array, epsilon: number): Float64Array {
  const square = row.reduce((sum, value) => sum + value * value, 0);
  const factor = 1 / Math.sqrt(square / row.length + epsilon);
  return row.map((value, i) => value * factor * weight[i]!);
}

/** Rotates every head of a row in place; position counts from 0. */
function rotate(row: Float64Array, position: number, head: number, theta: number, neighbours: boolean): void {
  for (let start = 0; start < row.length; start += head) {
    for (let i = 0; i < head / 2; i++) {
      const angle = position * theta ** ((-2 * i) / head);
      const first = start + (neighbours ? 2 * i : i);
      const second = neighbours ? first + 1 : first + head / 2;
      const [a, b] = [row[first]!, row[second]!];
      row[first] = a * Math.cos(angle) - b * Math.sin(angle);
      row[second] = b * Math.cos(angle) + a * Math.sin(angle);
    }
  }
}

/** Attention output of one query head over positions 0 … position of its key-value head. */
function attendTo(
  query: Float64Array,
  position: number,
  keys: Rows,
  values: Rows,
  from: number,
  window: number,
): Float64Array {
  const head = query.length;
  const scores = new Float64Array(position + 1);
  const first = Math.max(0, position + 1 - window);
  for (let at = first; at <= position; at++) {
    const key = keys[at]!;
    for (let i = 0; i < head; i++) scores[at]! += query[i]! * key[from + i]!;
    scores[at]! /= Math.sqrt(head);
  }
  const weights = scores.map((score, at) => (at < first ? 0 : Math.exp(score)));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const result = new Float64Array(head);
  for (let at = 0; at <= position; at++) {
    const value = values[at]!;
    for (let i = 0; i < head; i++) result[i]! += (weights[at]! / total) * value[from + i]!;
  }
  return result;
}

function attend(
  queries: Rows,
  keys: Rows,
  values: Rows,
  { sizes }: Weights,
  { alternateKvHeads: alternate = false, window = Infinity }: Variation,
): Float64Array[] {
  const { head_dim: head, num_attention_heads: heads, num_key_value_heads: kvHeads } = sizes;
  return queries.map((query, position) => {
    const result = new Float64Array(query.length);
    for (let h = 0; h < heads; h++) {
      const kvHead = alternate ? h % kvHeads : Math.floor((h * kvHeads) / heads);
      const one = query.subarray(h * head, (h + 1) * head);
      result.set(attendTo(one, position, keys, values, kvHead * head, window), h * head);
    }
    return result;
  });
}

const sum = (a: Rows, b: Rows) => a.map((row, i) => row.map((value, j) => value + b[i]![j]!));
const silu = (x: number) => x / (1 + Math.exp(-x));

/** The vector [hidden_size] of each token. */
function embed(
  { sizes: { hidden_size: width }, embedding }: Weights,
  ids: readonly number[],
): Float64Array[] {
  return ids.map((id) => embedding.slice(id * width, (id + 1) * width));
}

/** Logits [vocab_size] of every position. */
function forward(weights: Weights, vectors: Rows, variation: Variation): Float64Array[] {
  const { head_dim: head, rope_theta: theta, rms_norm_eps } = weights.sizes;
  const epsilon = variation.epsilon ?? rms_norm_eps;
  const neighbours = variation.rotateNeighbours ?? false;
  const round = variation.roundActivations ? rounded : variation.roundRows ? roundedRow : undefined;
  const linear = (map: Linear, rows: Rows) => apply(map, round ? rows.map(round) : rows);
  const norm = (rows: Rows, weight: Float64Array) => rows.map((row) => normalise(row, weight, epsilon));

  let stream = vectors;
  for (const [index, layer] of weights.layers.entries()) {
    const normed = variation.withoutNorm === index ? stream : norm(stream, layer.inputNorm);
    const queries = linear(layer.query, normed);
    const keys = linear(layer.key, normed);
    const shift = variation.queryShift ?? 0;
    for (const [position, row] of queries.entries()) rotate(row, position + shift, head, theta, neighbours);
    for (const [position, row] of keys.entries()) rotate(row, position, head, theta, neighbours);
    const values = linear(layer.value, normed);
    const stored = (rows: Rows) => (variation.roundKv ? rows.map(variation.roundKv) : rows);
    const attended = attend(queries, stored(keys), stored(values), weights, variation);
    stream = sum(stream, linear(layer.output, attended));

    const inside = norm(stream, layer.mlpNorm);
    const gates = linear(layer.gate, inside);
    const ups = linear(layer.up, inside);
    const active = gates.map((gate, position) => gate.map((x, i) => silu(x) * ups[position]![i]!));
    stream = sum(stream, linear(layer.down, active));
  }
  return linear(weights.head, norm(stream, weights.finalNorm));
}

export interface Float64Llama {
  /** Logits [vocabulary] of every position, for one sequence of token ids. */
  forward(ids: readonly number[], variation?: Variation): Float64Array[];
  /** The same for vectors [hidden], some of which may come from images. */
  forwardVectors(vectors: readonly Float64Array[]): Float64Array[];
  embed(ids: readonly number[]): Float64Array[];
}

export const float64Llama = {
  /** Reads `model.onnx` (MatMul, or MatMulNBits of 4 or 8 bits) and the `config.json` in its folder. */
  load(modelPath: string, parts: readonly string[] = []): Float64Llama {
    const weights = readWeights(modelPath, parts);
    return {
      forward: (ids, variation = {}) => forward(weights, embed(weights, ids), variation),
      forwardVectors: (vectors) => forward(weights, vectors, {}),
      embed: (ids) => embed(weights, ids),
    };
  },
};
