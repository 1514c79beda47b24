import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { withAdapter } from '../../../origin/export/checkpoint/adapter.ts';
import { openSafetensors } from '../../../origin/export/checkpoint/safetensors.ts';
import { randomFrom } from '../../support/random.ts';
import { writeJson } from '../../support/synthetic/synthetic-model.ts';
import { temporaryDirectory } from '../model/synthetic-runner.ts';
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
