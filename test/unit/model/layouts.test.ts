import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VARIANTS } from '../../../origin/model/model-files.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open-model.ts';
import { hasVnni } from '../../../origin/model/vnni.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { float64Llama, type Variation } from '../../support/float64-llama.ts';
import { writeByteTokenizer } from '../../synthetic/byte-tokenizer.ts';
import {
  type SyntheticLayout,
  type SyntheticModel,
  writeSyntheticModel,
} from '../../synthetic/synthetic-model.ts';
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
  readonly prefillChunk?: number;
  /** Of a logprob. */
  readonly tolerance: number;
  readonly needsVnni?: boolean;
}

const FLOAT32 = 2e-5;
const FLOAT16 = 1e-2;
/** Where activations are rounded, kernel and reference round alike; none of this prompt's stands on an edge. */
const ROUNDED = FLOAT32;

const community = (name: string): Partial<SyntheticLayout> => ({
  file: `onnx/${name}.onnx`,
  dataFile: `${name}.onnx_data`,
});
const half = { precision: 'float16' } as const;
const builder = { configuration: 'genai' } as const;
const plain = { attention: 'concatenated' } as const;
const merged = { attention: 'merged' } as const;
const int8 = { quantization: 'int8-dynamic' } as const;
const rows = { variation: { roundRows: true }, prefillChunk: 1 } as const;
const blocks = { variation: { roundActivations: true } } as const;
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

const PROMPT = randomTokens(21, 5);
const STEPS = 8;

async function continued(runner: ModelRunner, slot: number): Promise<Step[]> {
  const steps = [stepOf(await prefillPrompt(runner, slot, PROMPT))];
  while (steps.length < STEPS) {
    const next = { token: steps.at(-1)!.token, position: PROMPT.length + steps.length - 1 };
    const [logits] = await decodeRows(runner, slot, [next]);
    steps.push(stepOf(logits!));
  }
  return steps;
}

/** The same weights as a plain file, in doubles. */
function expected(model: Partial<SyntheticModel>, variation: Variation = {}): Step[] {
  const directory = temporaryDirectory();
  const weights = { ...model, attention: 'group-query', logits: 'float32', externalData: false } as const;
  writeSyntheticModel(directory, weights);
  const reference = float64Llama.load(join(directory, 'model.onnx'));
  const tokens = [...PROMPT];
  const steps: Step[] = [];
  while (steps.length < STEPS) {
    steps.push(stepOf(reference.forward(tokens, variation).at(-1)!));
    tokens.push(steps.at(-1)!.token);
  }
  return steps;
}

it.for(LAYOUTS)(
  '$layout: greedy tokens and logprobs are those of a forward pass in doubles',
  async ({ model = {}, place = {}, variation, prefillChunk = 8, tolerance, needsVnni = false }, { skip }) => {
    skip(
      needsVnni && !hasVnni(),
      'without VNNI, ONNX Runtime overflows in 8-bit products inside of branches',
    );
    const directory = temporaryDirectory();
    writeSyntheticModel(directory, model, place);
    const { runner } = await openModel(modelOptions(directory, { prefillChunk }));
    const steps = await continued(runner, 2);
    runner.dispose();
    const reference = expected(model, variation);
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

it('a reference without the sliding window would be noticed', () => {
  const [first] = expected(window);
  const [windowed] = expected(window, { window: 12 });
  expect(Math.abs(first!.logprobs[7]! - windowed!.logprobs[7]!)).toBeGreaterThan(1000 * FLOAT32);
});

it('the tokens that end a text are read from genai_config.json where there is no other file', () => {
  const directory = temporaryDirectory();
  const model = writeSyntheticModel(directory, { vocabulary: 320 }, builder);
  writeByteTokenizer(directory, model.vocabulary);
  rmSync(join(directory, 'tokenizer_config.json'));
  expect(Tokenizer.fromDirectory(directory).eosIds).toEqual([319]);
});

describe('of several variants in one directory', () => {
  const FILES = {
    fp32: { quantization: 'none' },
    fp16: { precision: 'float16' },
    q4: { quantization: 'q4' },
    q8: int8,
  } as const;
  const names = { fp32: 'model', fp16: 'model_fp16', q4: 'model_q4', q8: 'model_quantized' };

  function severalVariants(variants: readonly (keyof typeof FILES)[]): string {
    const directory = temporaryDirectory();
    for (const variant of variants) writeSyntheticModel(directory, FILES[variant], community(names[variant]));
    return directory;
  }

  it.each([
    { there: ['fp32', 'fp16', 'q4', 'q8'], best: 'model_q4' },
    { there: ['fp32', 'fp16', 'q8'], best: 'model_fp16' },
    { there: ['fp32', 'q8'], best: 'model' },
    { there: ['q8'], best: 'model_quantized' },
  ] as const)('$best is the best of $there', async ({ there, best }) => {
    const { runner, summary } = await openModel(modelOptions(severalVariants(there)));
    runner.dispose();
    expect(summary.startsWith(`onnx/${best}.onnx: `)).toBe(true);
  });

  it('the one asked for is loaded, and one that is not there is refused with those that are', async () => {
    const directory = severalVariants(['fp32', 'q4', 'q8']);
    const { runner, summary } = await openModel(modelOptions(directory, { variant: 'q8' }));
    runner.dispose();
    expect(summary).toMatch(/^onnx\/model_quantized\.onnx: .* rows run one by one/);
    await expect(openModel(modelOptions(directory, { variant: 'fp16' }))).rejects.toThrow(
      /has no variant fp16; there are: q4, fp32, q8$/,
    );
    expect(VARIANTS).toContain('fp16');
  });
});

describe.each([
  { name: 'int8 with GroupQueryAttention', model: int8 },
  { name: 'past concatenated', model: plain },
  { name: 'past concatenated, int8', model: { ...plain, ...int8 } },
  { name: 'merged', model: merged },
  { name: 'merged, one token after a past', model: { ...merged, cachedBranch: 'one-token' } },
] as const)('every bit of a row is its own: $name', ({ model }) => {
  const LENGTHS = [1, 7, 33, 90, 16];

  it('in any company, in any slot, after copies and shorter prompts', async () => {
    const directory = temporaryDirectory();
    writeSyntheticModel(directory, model);
    const slots = LENGTHS.length + 1;
    const { runner } = await openModel(modelOptions(directory, { slots, prefillChunk: 16 }));
    const alone: Float32Array[] = [];
    for (const [row, length] of LENGTHS.entries()) {
      await prefillPrompt(runner, 0, randomTokens(length, row));
      alone.push(...(await decodeRows(runner, 0, [{ token: row, position: length }])));
    }
    for (const [row, length] of LENGTHS.entries()) {
      await prefillPrompt(runner, 0, randomTokens(length, row));
      for (let step = 0; step < 3; step++)
        await decodeRows(runner, 0, [{ token: 9, position: length + step }]);
      runner.copy(0, row + 1, length);
    }
    const batch = LENGTHS.map((position, token) => ({ token, position }));
    for (let first = 0; first < batch.length; first++) {
      for (let end = first + 1; end <= batch.length; end++) {
        const together = await decodeRows(runner, first + 1, batch.slice(first, end));
        expect(together).toEqual(alone.slice(first, end));
      }
    }
    runner.dispose();
  });

  it('however many positions are asked for with it', async () => {
    const directory = temporaryDirectory();
    writeSyntheticModel(directory, model);
    const { runner } = await openModel(modelOptions(directory, { prefillChunk: 8 }));
    const tokens = randomTokens(16, 1);
    const at = async (wanted: readonly number[]) => {
      const never = new AbortController().signal;
      await runner.prefill(
        { slot: 1, start: 0, tokens: tokens.subarray(0, 8), logitsAt: new Int32Array() },
        never,
      );
      const chunk = { slot: 1, start: 8, tokens: tokens.subarray(8), logitsAt: Int32Array.from(wanted) };
      return (await runner.prefill(chunk, never)).slice();
    };
    const all = await at([0, 1, 2, 3, 4, 5, 6, 7]);
    for (const wanted of [[7], [0], [2, 5], []]) {
      const chosen = wanted.flatMap((i) => [...all.subarray(256 * i, 256 * (i + 1))]);
      expect(await at(wanted)).toEqual(Float32Array.from(chosen));
    }
    runner.dispose();
  });
});
