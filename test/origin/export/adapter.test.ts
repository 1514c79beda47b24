import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { withAdapter } from '../../../origin/export/checkpoint/adapter.ts';
import { openSafetensors } from '../../../origin/export/checkpoint/safetensors.ts';
import { openCheckpoint } from '../../../origin/export/open-checkpoint.ts';
import { randomFrom } from '../../support/random.ts';
import { writeJson } from '../../support/synthetic/synthetic-model.ts';
import { temporaryDirectory } from '../model/synthetic-runner.ts';
import { CASES } from './family-cases.ts';
import { hashedCheckpoint } from './hashed-checkpoint.ts';
import { safetensorsBytes, type WrittenTensors, writeLlama } from './written-checkpoint.ts';

const QUERY = 'model.layers.1.self_attn.q_proj.weight';
const VALUE = 'model.layers.0.self_attn.v_proj.weight';
const EMBEDDING = 'model.embed_tokens.weight';
const HEAD = 'lm_head.weight';
const [HIDDEN, KV, VOCABULARY, RANK] = [64, 32, 256, 3];

const random = randomFrom(33);
const matrix = (...shape: readonly number[]) => ({
  shape,
  values: Array.from({ length: shape.reduce((product, size) => product * size) }, () => random() - 0.5),
});

const FACTORS: WrittenTensors = {
  'base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight': matrix(RANK, HIDDEN),
  'base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight': matrix(HIDDEN, RANK),
  'base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight': matrix(RANK, HIDDEN),
  'base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight': matrix(KV, RANK),
  'base_model.model.model.embed_tokens.lora_embedding_A': matrix(RANK, VOCABULARY),
  'base_model.model.model.embed_tokens.lora_embedding_B': matrix(HIDDEN, RANK),
  'base_model.model.lm_head.weight': matrix(VOCABULARY, HIDDEN),
};

function writeAdapter(folder: string, tensors: WrittenTensors, config: object = {}): string {
  const directory = join(folder, 'adapter');
  mkdirSync(directory, { recursive: true });
  writeJson(join(directory, 'adapter_config.json'), { peft_type: 'LORA', r: RANK, lora_alpha: 6, ...config });
  writeFileSync(join(directory, 'adapter_model.safetensors'), safetensorsBytes(tensors));
  return directory;
}

async function merged(tensors: WrittenTensors, config: object = {}) {
  const folder = temporaryDirectory();
  const llama = writeLlama(folder);
  const base = await openSafetensors(llama.directory);
  onTestFinished(() => base.close());
  return { base: llama.tensors, checkpoint: await withAdapter(base, writeAdapter(folder, tensors, config)) };
}

const elementOf = (tensors: WrittenTensors, name: string, row: number, column: number): number => {
  const { shape, values } = tensors[name]!;
  return Math.fround(values[row * shape.at(-1)! + column]!);
};

/** Σ b[row, r] · a[r, column] in float64. */
function product(module: string, row: number, column: number): number {
  const name = `base_model.model.${module}`;
  let sum = 0;
  for (let r = 0; r < RANK; r++) {
    sum +=
      elementOf(FACTORS, `${name}.lora_B.weight`, row, r) *
      elementOf(FACTORS, `${name}.lora_A.weight`, r, column);
  }
  return sum;
}

describe('a LoRA adapter', () => {
  it.each([
    { config: {}, scale: 6 / RANK, valueScale: 6 / RANK },
    { config: { use_rslora: true }, scale: 6 / Math.sqrt(RANK), valueScale: 6 / Math.sqrt(RANK) },
    { config: { alpha_pattern: { v_proj: 12 } }, scale: 6 / RANK, valueScale: 12 / RANK },
  ])('adds scale · B · A to each row: $config', async ({ config, scale, valueScale }) => {
    const { base, checkpoint } = await merged(FACTORS, config);
    for (const [name, factor] of [
      [QUERY, scale],
      [VALUE, valueScale],
    ] as const) {
      const rows = await checkpoint.readRows(name, 5, 7);
      for (const [row, column] of [
        [0, 0],
        [3, 11],
        [6, 63],
      ] as const) {
        const expected =
          elementOf(base, name, 5 + row, column) +
          factor * product(name.replace('.weight', ''), 5 + row, column);
        expect(rows[row * HIDDEN + column]).toBeCloseTo(expected, 5);
      }
    }
  });

  it('adds (B · A)ᵀ to the embedding and replaces modules that were saved whole', async () => {
    const { base, checkpoint } = await merged(FACTORS);
    const rows = await checkpoint.readRows(EMBEDDING, 200, 2);
    let delta = 0;
    const name = 'base_model.model.model.embed_tokens.lora_embedding';
    for (let r = 0; r < RANK; r++) {
      delta += elementOf(FACTORS, `${name}_B`, 17, r) * elementOf(FACTORS, `${name}_A`, r, 201);
    }
    expect(rows[HIDDEN + 17]).toBeCloseTo(elementOf(base, EMBEDDING, 201, 17) + 2 * delta, 5);
    const head = await checkpoint.readRows(HEAD, 31, 1);
    expect([...head]).toEqual(
      Array.from({ length: HIDDEN }, (_, column) =>
        elementOf(FACTORS, 'base_model.model.lm_head.weight', 31, column),
      ),
    );
  });

  it('leaves other tensors as they are', async () => {
    const { base, checkpoint } = await merged(FACTORS);
    const name = 'model.layers.0.self_attn.q_proj.weight';
    const rows = await checkpoint.readRows(name, 2, 1);
    expect(rows[9]).toBe(elementOf(base, name, 2, 9));
  });

  const withoutB = Object.fromEntries(
    Object.entries(FACTORS).filter(([name]) => !name.includes('v_proj.lora_B')),
  );
  it.each([
    { fault: 'DoRA', tensors: FACTORS, config: { use_dora: true }, message: 'use_dora' },
    { fault: 'another kind', tensors: FACTORS, config: { peft_type: 'IA3' }, message: 'peft_type' },
    { fault: 'a factor alone', tensors: withoutB, config: {}, message: 'without its lora_B' },
    {
      fault: 'a module that the model lacks',
      tensors: { 'base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight': matrix(RANK, HIDDEN) },
      config: {},
      message: 'model.layers.9.self_attn.q_proj.weight, which',
    },
    {
      fault: 'another shape',
      tensors: {
        ...FACTORS,
        'base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight': matrix(HIDDEN + 1, RANK),
      },
      config: {},
      message: `but ${QUERY} is [64, 64]`,
    },
    {
      fault: 'a regular expression',
      tensors: FACTORS,
      config: { alpha_pattern: { '(a+)+': 1 } },
      message: 'alpha_pattern',
    },
  ])('is refused with $fault', async ({ tensors, config, message }) => {
    await expect(merged(tensors, config)).rejects.toThrow(message);
  });
});

/** Its layers have matrices, and kernels of convolutions [channels, 1, length]. */
describe.each(['lfm2', 'qwen3_5_text', 'granitemoehybrid-mamba', 'mamba2', 'kimi_linear', 'recurrent_gemma'])(
  'a LoRA adapter of %s, a model with states',
  (name) => {
    const { config, tensors } = CASES.find((one) => one.name === name)!;
    const base = hashedCheckpoint(config, tensors);
    const ofLayers = Object.entries(tensors).filter(([tensor]) => /layers\.0\..*weight$/.test(tensor));
    const factorsOf = (tensor: string, [rows, ...columns]: readonly number[]): WrittenTensors => ({
      [`base_model.model.${tensor.replace(/weight$/, 'lora_A.weight')}`]: matrix(RANK, ...columns),
      [`base_model.model.${tensor.replace(/weight$/, 'lora_B.weight')}`]: matrix(
        rows!,
        RANK,
        ...columns.slice(1).map(() => 1),
      ),
    });
    const mergedWith = (adapter: WrittenTensors) =>
      withAdapter(base, writeAdapter(temporaryDirectory(), adapter));

    it('is merged into every matrix of its layers', async () => {
      const matrices = ofLayers.filter(([, shape]) => shape.length === 2);
      const adapter = Object.assign({}, ...matrices.map((one) => factorsOf(...one))) as WrittenTensors;
      const checkpoint = await mergedWith(adapter);
      expect(matrices.length).toBeGreaterThan(1);
      for (const [tensor, [, columns]] of matrices) {
        const part = (factor: string, row: number, column: number) =>
          elementOf(adapter, `base_model.model.${tensor.replace(/weight$/, factor)}`, row, column);
        const [before, after] = [await base.readRows(tensor, 1, 1), await checkpoint.readRows(tensor, 1, 1)];
        for (const column of [0, columns! - 1]) {
          let sum = 0;
          for (let r = 0; r < RANK; r++)
            sum += part('lora_B.weight', 1, r) * part('lora_A.weight', r, column);
          expect(after[column], tensor).toBeCloseTo(before[column]! + (6 / RANK) * sum, 5);
        }
      }
    });

    it('is refused by the name of the tensor if it changes the kernel of a convolution', async () => {
      const [tensor, shape] = ofLayers.find(([, { length }]) => length === 3)!;
      await expect(mergedWith(factorsOf(tensor, shape))).rejects.toThrow(
        `but ${tensor} is [${shape.join(', ')}]`,
      );
    });
  },
);

/** The expected rows were compared with PEFT 0.21: both ends of the tie, factors, saved modules. */
describe('a LoRA adapter of a model whose head is tied to the embedding', () => {
  async function mergedTied(tensors: WrittenTensors, config: object = {}) {
    const folder = temporaryDirectory();
    const { directory, tensors: all } = writeLlama(folder);
    const { [HEAD]: _, ...base } = all;
    writeFileSync(join(directory, 'model.safetensors'), safetensorsBytes(base));
    const configFile = join(directory, 'config.json');
    writeJson(configFile, { ...JSON.parse(readFileSync(configFile, 'utf8')), tie_word_embeddings: true });
    const checkpoint = await openCheckpoint(directory, writeAdapter(folder, tensors, config));
    onTestFinished(() => checkpoint.close());
    const row = async (name: string) => Array.from(await checkpoint.readRows(name, 77, 1));
    return { base, checkpoint, row };
  }

  const rowOf = (tensors: WrittenTensors, name: string): number[] =>
    Array.from({ length: HIDDEN }, (_, column) => elementOf(tensors, name, 77, column));
  const sum = (a: readonly number[], b: readonly number[]) =>
    a.map((value, column) => Math.fround(value + Math.fround(b[column]!)));
  const expectClose = (actual: readonly number[], expected: readonly number[]) => {
    for (const [column, value] of expected.entries()) expect(actual[column]).toBeCloseTo(value, 5);
  };

  const WRAPPED = 'base_model.model.';
  const EMBEDDING_FACTORS: WrittenTensors = {
    [`${WRAPPED}model.embed_tokens.lora_embedding_A`]: matrix(RANK, VOCABULARY),
    [`${WRAPPED}model.embed_tokens.lora_embedding_B`]: matrix(HIDDEN, RANK),
  };
  const HEAD_FACTORS: WrittenTensors = {
    [`${WRAPPED}lm_head.lora_A.weight`]: matrix(RANK, HIDDEN),
    [`${WRAPPED}lm_head.lora_B.weight`]: matrix(VOCABULARY, RANK),
  };
  const saved = matrix(VOCABULARY, HIDDEN);
  const columns = Array.from({ length: HIDDEN }, (_, column) => column);
  const ranks = Array.from({ length: RANK }, (_, rank) => rank);
  const embeddingDelta = columns.map((column) =>
    ranks.reduce(
      (total, rank) =>
        total +
        2 *
          elementOf(EMBEDDING_FACTORS, `${WRAPPED}model.embed_tokens.lora_embedding_B`, column, rank) *
          elementOf(EMBEDDING_FACTORS, `${WRAPPED}model.embed_tokens.lora_embedding_A`, rank, 77),
      0,
    ),
  );
  const headDelta = columns.map((column) =>
    ranks.reduce(
      (total, rank) =>
        total +
        2 *
          elementOf(HEAD_FACTORS, `${WRAPPED}lm_head.lora_B.weight`, 77, rank) *
          elementOf(HEAD_FACTORS, `${WRAPPED}lm_head.lora_A.weight`, rank, column),
      0,
    ),
  );

  it.each([
    { changes: 'the embedding only', tensors: EMBEDDING_FACTORS, embedding: embeddingDelta, head: null },
    { changes: 'the head only', tensors: HEAD_FACTORS, embedding: null, head: headDelta },
    {
      changes: 'both ends, each by its own factors',
      tensors: { ...EMBEDDING_FACTORS, ...HEAD_FACTORS },
      embedding: embeddingDelta,
      head: headDelta,
    },
  ])('changes $changes by factors', async ({ tensors, embedding, head }) => {
    const { base, row } = await mergedTied(tensors);
    const shared = rowOf(base, EMBEDDING);
    expectClose(await row(EMBEDDING), embedding === null ? shared : sum(shared, embedding));
    expectClose(await row(HEAD), head === null ? shared : sum(shared, head));
  });

  const whole = (name: string) => ({ [WRAPPED + name]: saved });
  const SAVED_EMBEDDING = { modules_to_save: ['embed_tokens'] };
  it.each([
    ['a saved embedding', whole('model.embed_tokens.weight'), SAVED_EMBEDDING, [true, false]],
    ['a wrapped embedding', whole('model.embed_tokens.modules_to_save.weight'), {}, [true, false]],
    ['a saved head', whole('lm_head.weight'), { modules_to_save: ['lm_head'] }, [false, true]],
    ['the base of the embedding', whole('model.embed_tokens.base_layer.weight'), {}, [true, true]],
    ['the base of the head', whole('lm_head.base_layer.weight'), {}, [true, true]],
    [
      'the base beside a saved embedding',
      whole('model.embed_tokens.original_module.weight'),
      {},
      [true, true],
    ],
    ['an embedding that is no module to save', whole('model.embed_tokens.weight'), {}, [true, true]],
  ] as const)('takes %s', async (_, tensors, config, [embedding, head]) => {
    const { base, row } = await mergedTied(tensors, config);
    const [shared, own] = [rowOf(base, EMBEDDING), rowOf(tensors, Object.keys(tensors)[0]!)];
    expect(await row(EMBEDDING)).toEqual(embedding ? own : shared);
    expect(await row(HEAD)).toEqual(head ? own : shared);
  });

  it('adds the factors of the embedding to its saved base, which the head keeps', async () => {
    const tensors = { ...EMBEDDING_FACTORS, ...whole('model.embed_tokens.base_layer.weight') };
    const { row } = await mergedTied(tensors);
    const own = rowOf(tensors, `${WRAPPED}model.embed_tokens.base_layer.weight`);
    expectClose(await row(EMBEDDING), sum(own, embeddingDelta));
    expect(await row(HEAD)).toEqual(own);
  });

  it('stays tied if the adapter changes neither end', async () => {
    const { checkpoint } = await mergedTied({
      [`${WRAPPED}model.layers.1.self_attn.q_proj.lora_A.weight`]: matrix(RANK, HIDDEN),
      [`${WRAPPED}model.layers.1.self_attn.q_proj.lora_B.weight`]: matrix(HIDDEN, RANK),
    });
    expect(checkpoint.tensors.has(HEAD)).toBe(false);
  });
});
