import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { hasVnni } from '../../../origin/model/ort/vnni.ts';
import { float64Llama, type Variation } from '../../support/float64-llama.ts';
import {
  type SyntheticLayout,
  type SyntheticModel,
  writeSyntheticModel,
} from '../../support/synthetic/synthetic-model.ts';
import { builder, community, int8, merged, plain } from './layout-parts.ts';
import {
  decodeRows,
  modelOptions,
  prefillPrompt,
  randomTokens,
  temporaryDirectory,
} from './synthetic-runner.ts';

interface Layout {
  readonly layout: string;
  readonly model?: Partial<SyntheticModel>;
  readonly place?: Partial<SyntheticLayout>;
  readonly variation?: Variation;
  /** Of the prompt. */
  readonly seed?: number;
  readonly prefillChunk?: number;
  /** Of a logprob. */
  readonly tolerance: number;
  readonly needsVnni?: boolean;
}

const FLOAT32 = 2e-5;
const FLOAT16 = 1e-2;
/**
 * Kernel and reference round activations to the same levels on every machine. The prompts were chosen for
 * this: of 200,000 values in float64, none is within 1.3e-4 of a level's width of a rounding edge.
 */
const ROUNDED = FLOAT32;

const half = { precision: 'float16' } as const;
const rows = { variation: { roundRows: true }, prefillChunk: 1, seed: 48 } as const;
const blocks = { variation: { roundActivations: true }, seed: 20 } as const;
const window = { slidingWindow: 12 };

const LAYOUTS: readonly Layout[] = [
  { layout: 'builder, float32', model: { externalData: true }, place: builder, tolerance: FLOAT32 },
  {
    layout: 'builder, position ids, float16 with float16 logits',
    model: { ...half, logits: 'float16', positionIds: true, externalData: true },
    place: builder,
    tolerance: FLOAT16,
  },
  {
    layout: 'builder, sliding window',
    model: window,
    place: { ...builder, file: 'decoder.onnx' },
    variation: { window: 12 },
    tolerance: FLOAT32,
  },
  {
    layout: 'builder 0.18, kv_cache_dim',
    model: { kvDimension: 'symbol' },
    place: builder,
    tolerance: FLOAT32,
  },
  {
    layout: 'builder 0.18, sliding window with sliding_window_cache',
    model: { ...window, windowedCache: true, kvDimension: 'symbol' },
    place: builder,
    variation: { window: 12 },
    tolerance: FLOAT32,
  },
  {
    layout: 'builder, long RoPE',
    model: { shortRope: 40 },
    place: builder,
    tolerance: FLOAT32,
  },
  {
    layout: 'community, fp32',
    model: { externalData: true },
    place: community('model'),
    tolerance: FLOAT32,
  },
  {
    layout: 'community, fp16',
    model: { ...half, externalData: true },
    place: community('model_fp16'),
    tolerance: FLOAT16,
  },
  ...(['scalar', 'list'] as const).map((logitsToKeep) => ({
    layout: `community, num_logits_to_keep as ${logitsToKeep}`,
    model: { logitsToKeep },
    place: community('model'),
    tolerance: FLOAT32,
  })),
  {
    layout: 'merged, num_logits_to_keep',
    model: { ...merged, logitsToKeep: 'scalar' },
    place: community('decoder_model_merged'),
    tolerance: FLOAT32,
  },
  {
    layout: 'community, q4',
    model: { quantization: 'q4', externalData: true, positionIds: true },
    place: community('model_q4'),
    ...blocks,
    tolerance: ROUNDED,
  },
  {
    layout: 'community, q4f16',
    model: { ...half, quantization: 'q4', externalData: true },
    place: community('model_q4f16'),
    tolerance: FLOAT16,
  },
  ...['model_q8', 'model_quantized', 'model_int8', 'model_uint8'].map((name) => ({
    layout: `community, ${name}`,
    model: int8,
    place: community(name),
    ...rows,
    tolerance: ROUNDED,
  })),
  { layout: 'Optimum', model: { ...plain, positionIds: true }, tolerance: FLOAT32 },
  {
    layout: 'Optimum, sliding window in the mask',
    model: { ...plain, ...window, positionIds: true },
    variation: { window: 12 },
    tolerance: FLOAT32,
  },
  {
    layout: 'merged, sliding window in the mask',
    model: { ...merged, ...window },
    place: { file: 'decoder_model_merged.onnx' },
    variation: { window: 12 },
    tolerance: FLOAT32,
  },
  { layout: 'Optimum without position ids', model: plain, tolerance: FLOAT32 },
  { layout: 'Optimum, as many KV heads as heads', model: { ...plain, kvHeads: 4 }, tolerance: FLOAT32 },
  {
    layout: 'Optimum, float16 with float16 logits',
    model: { ...plain, ...half, logits: 'float16', positionIds: true },
    tolerance: FLOAT16,
  },
  { layout: 'Optimum, int8', model: { ...plain, ...int8 }, ...rows, tolerance: ROUNDED },
  {
    layout: 'merged',
    model: { ...merged, positionIds: true, externalData: true },
    place: community('decoder_model_merged'),
    tolerance: FLOAT32,
  },
  {
    layout: 'merged, one token after a past',
    model: { ...merged, cachedBranch: 'one-token' },
    place: { file: 'decoder_model_merged.onnx' },
    tolerance: FLOAT32,
  },
  {
    layout: 'merged, float16',
    model: { ...merged, ...half, logits: 'float16' },
    place: community('decoder_model_merged_fp16'),
    tolerance: FLOAT16,
  },
  {
    layout: 'merged, int8',
    model: { ...merged, ...int8 },
    place: community('decoder_model_merged_quantized'),
    ...rows,
    tolerance: ROUNDED,
    needsVnni: true,
  },
];

interface Step {
  readonly token: number;
  readonly logprobs: Float64Array;
}

function stepOf(logits: ArrayLike<number>): Step {
  const values = Float64Array.from(logits);
  const most = Math.max(...values);
  const total = Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0));
  return { token: values.indexOf(most), logprobs: values.map((value) => value - most - total) };
}

const promptOf = (seed = 5): Int32Array => randomTokens(21, seed);
const STEPS = 8;

async function continued(runner: ModelRunner, slot: number, prompt: Int32Array): Promise<Step[]> {
  const steps = [stepOf(await prefillPrompt(runner, slot, prompt))];
  while (steps.length < STEPS) {
    const next = { token: steps.at(-1)!.token, position: prompt.length + steps.length - 1 };
    const [logits] = await decodeRows(runner, slot, [next]);
    steps.push(stepOf(logits!));
  }
  return steps;
}

/** The same weights as a plain file, in doubles. */
function expected(
  model: Partial<SyntheticModel>,
  variation: Variation = {},
  prompt: Int32Array = promptOf(),
): Step[] {
  const directory = temporaryDirectory();
  const weights = {
    ...model,
    ...({ attention: 'group-query', shortRope: 0, logits: 'float32', externalData: false } as const),
    ...({ kvDimension: 'number', windowedCache: false, logitsToKeep: 'none' } as const),
  };
  writeSyntheticModel(directory, weights);
  const reference = float64Llama.load(join(directory, 'model.onnx'));
  const tokens = [...prompt];
  const steps: Step[] = [];
  while (steps.length < STEPS) {
    steps.push(stepOf(reference.forward(tokens, variation).at(-1)!));
    tokens.push(steps.at(-1)!.token);
  }
  return steps;
}

/** Opens the synthetic model of a layout, or skips the test where it cannot be computed. */
async function openLayout(
  { model = {}, place = {}, prefillChunk = 8, needsVnni = false }: Layout,
  skip: (condition: boolean, note: string) => void,
): Promise<ModelRunner> {
  skip(needsVnni && !hasVnni(), 'without VNNI, ONNX Runtime overflows in 8-bit products inside of branches');
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, model, place);
  const { runner } = await openModel(modelOptions(directory, { prefillChunk }));
  return runner;
}

it.for(LAYOUTS)(
  '$layout: greedy tokens and logprobs match a float64 forward pass',
  async (layout, { skip }) => {
    const { model = {}, variation, tolerance } = layout;
    const runner = await openLayout(layout, skip);
    const prompt = promptOf(layout.seed);
    const steps = await continued(runner, 2, prompt);
    runner.dispose();
    const reference = expected(model, variation, prompt);
    expect(steps.map(({ token }) => token)).toEqual(reference.map(({ token }) => token));
    const differences = steps.map(({ logprobs }, step) =>
      logprobs.reduce(
        (most, value, id) => Math.max(most, Math.abs(value - reference[step]!.logprobs[id]!)),
        0,
      ),
    );
    expect(Math.max(...differences)).toBeLessThan(tolerance);
  },
);

it.for(LAYOUTS)(
  '$layout: KV that was read and written to another slot gives the same bits',
  async (layout, { skip }) => {
    const runner = await openLayout(layout, skip);
    const { kvBytes, shape } = runner;
    const prompt = promptOf(layout.seed);
    const logits = await prefillPrompt(runner, 2, prompt);
    // The other slot has the KV of a longer prompt.
    await prefillPrompt(runner, 1, randomTokens(prompt.length + 9, 5));
    const end = prompt.length - 1 - ((prompt.length - 1) % shape.prefillChunk);
    const parts: Uint8Array[] = [];
    for (let start = 0; start < end; start += shape.prefillChunk) {
      const bytes = new Uint8Array(shape.prefillChunk * kvBytes.positionBytes);
      kvBytes.read(2, start, start + shape.prefillChunk, bytes);
      parts.push(bytes);
    }
    kvBytes.write(1, 0, parts.slice(0, 1));
    kvBytes.write(1, shape.prefillChunk, parts.slice(1));
    const tokens = prompt.subarray(end);
    const rest = { slot: 1, start: end, tokens, logitsAt: Int32Array.of(tokens.length - 1) };
    const restored = (await runner.prefill(rest, new AbortController().signal)).slice();
    runner.dispose();
    expect(restored).toEqual(logits);
  },
);

it('detects a reference without the sliding window', () => {
  const [first] = expected(window);
  const [windowed] = expected(window, { window: 12 });
  expect(Math.abs(first!.logprobs[7]! - windowed!.logprobs[7]!)).toBeGreaterThan(1000 * FLOAT32);
});
