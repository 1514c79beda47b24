import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { WeightPrecision } from '../../../origin/export/graph/linear.ts';
import { readGraph } from '../../../origin/model/onnx/onnx-graph.ts';
import { float64Llama } from '../../support/float64-llama.ts';
import { writeJson } from '../../support/synthetic/synthetic-model.ts';
import { decodeRows, prefillPrompt, randomTokens, temporaryDirectory } from '../model/synthetic-runner.ts';
import { built, expectSameBits, largestDifference, openRunner } from './built-model.ts';
import { safetensorsBytes, writeLlama } from './written-checkpoint.ts';

const PRECISIONS: readonly WeightPrecision[] = [
  'fp32',
  'fp16',
  'int8',
  'int8a8',
  'int8f32',
  'int4',
  'int4f32',
];
const LENGTHS = [1, 2, 31, 32, 33, 90];
const SIZES = [
  { heads: 4, kvHeads: 2, headSize: 16 },
  { heads: 4, kvHeads: 4, headSize: 24, hidden: 72 },
  { heads: 8, kvHeads: 1, headSize: 64, hidden: 96, intermediate: 132 },
  { heads: 2, kvHeads: 2, headSize: 80 },
];

describe('a Llama from safetensors', () => {
  it.each(SIZES)('in fp32 has the logits of the float64 pass: $heads heads of $headSize', async (sizes) => {
    const { directory, reference } = writeLlama(temporaryDirectory(), sizes);
    const { directory: model, unusedTensors } = await built(directory);
    expect(unusedTensors).toEqual([]);
    const runner = await openRunner(model);
    const exact = float64Llama.load(join(reference, 'model.onnx'));
    for (const length of LENGTHS) {
      const prompt = randomTokens(length, length);
      const expected = exact.forward([...prompt, 5]);
      const prefilled = await prefillPrompt(runner, 0, prompt);
      expect(largestDifference(prefilled, expected.at(-2)!)).toBeLessThan(1e-4);
      const [decoded] = await decodeRows(runner, 0, [{ token: 5, position: length }]);
      expect(largestDifference(decoded!, expected.at(-1)!)).toBeLessThan(1e-4);
    }
  });

  it('notices a fault of one position in the queries', async () => {
    const { directory, reference } = writeLlama(temporaryDirectory());
    const runner = await openRunner((await built(directory)).directory);
    const prompt = randomTokens(33, 1);
    const [shifted] = float64Llama
      .load(join(reference, 'model.onnx'))
      .forward([...prompt], { queryShift: 1 })
      .slice(-1);
    expect(largestDifference(await prefillPrompt(runner, 0, prompt), shifted!)).toBeGreaterThan(1e-2);
  });

  it.each(PRECISIONS)(
    'in %s has the same bits alone, in a batch of eight and after a copied prefix',
    async (precision) => {
      const { directory } = writeLlama(temporaryDirectory(), { hidden: 96, heads: 6, headSize: 16 });
      const runner = await openRunner((await built(directory, { precision })).directory);
      await expectSameBits(runner);
    },
  );

  it.each(['int8', 'int4'] as const)(
    'in %s and blocks of at most 128 has the largest that divide its columns, and the same bits in a batch',
    async (precision) => {
      const sizes = { hidden: 128, intermediate: 192, heads: 6, headSize: 16 };
      const { directory } = writeLlama(temporaryDirectory(), sizes);
      const { directory: model } = await built(directory, { precision, blockSize: 128 });
      const { nodes } = readGraph(readFileSync(join(model, 'model.onnx')));
      const products = nodes.filter(({ operator }) => operator === 'MatMulNBits');
      const blocks = new Map(products.map(({ integers }) => [integers.get('K'), integers.get('block_size')]));
      expect(blocks).toEqual(
        new Map([
          [128, 128],
          [96, 32],
          [192, 64],
        ]),
      );
      await expectSameBits(await openRunner(model));
    },
  );

  it.each(['int4', 'int4f32'] as const)(
    'in %s has 4 bits in its feed-forward matrices only',
    async (precision) => {
      const { directory } = writeLlama(temporaryDirectory());
      const { directory: model } = await built(directory, { precision });
      const { nodes } = readGraph(readFileSync(join(model, 'model.onnx')));
      const products = nodes.filter(({ operator }) => operator === 'MatMulNBits');
      const inFour = products.filter(({ integers }) => integers.get('bits') === 4);
      const kindOf = (name: string) => /\.(\w+)\.\w+_proj/.exec(name)?.[1] ?? 'head';
      expect(new Set(inFour.map(({ inputs }) => kindOf(inputs[1]!)))).toEqual(new Set(['mlp']));
      const inEight = products.filter(({ integers }) => integers.get('bits') === 8);
      expect(new Set(inEight.map(({ inputs }) => kindOf(inputs[1]!)))).toEqual(
        new Set(['self_attn', 'head']),
      );
    },
  );

  it.each([
    ['fp16', 4],
    ['fp32', 5],
    ['int8', 5],
  ] as const)('in %s has %i products per layer', async (precision, products) => {
    const { directory } = writeLlama(temporaryDirectory());
    const { directory: model } = await built(directory, { precision });
    const { nodes } = readGraph(readFileSync(join(model, 'model.onnx')));
    const layers = nodes.filter(({ operator }) => operator === 'GroupQueryAttention').length;
    const all = nodes.filter(({ operator }) => operator.includes('MatMul')).length;
    // One makes the logits.
    expect((all - 1) / layers).toBe(products);
  });

  it('in int8f32 loses less than in int8 if a channel is far out of the range of the others', async () => {
    const folder = temporaryDirectory();
    const { directory, tensors } = writeLlama(folder);
    const gains = /(input|post_attention)_layernorm\.weight$/;
    const followers = /(q|k|v|gate|up)_proj\.weight$/;
    // The function stays the same: what follows a norm divides by what its gain has more.
    const scaled = Object.entries(tensors).map(([name, { shape, values }]) => {
      const factor = gains.test(name) ? 30 : followers.test(name) ? 1 / 30 : 1;
      const isOut = (index: number) => index % shape.at(-1)! === 7;
      return [
        name,
        { shape, values: Float64Array.from(values, (x, i) => (isOut(i) ? x * factor : x)) },
      ] as const;
    });
    writeFileSync(join(directory, 'model.safetensors'), safetensorsBytes(Object.fromEntries(scaled)));
    const prompt = randomTokens(64, 3);
    const logitsIn = async (precision: WeightPrecision) => {
      const runner = await openRunner((await built(directory, { precision })).directory);
      return (await prefillPrompt(runner, 0, prompt)).slice();
    };
    const exact = await logitsIn('fp32');
    const lost = async (precision: WeightPrecision) => largestDifference(await logitsIn(precision), exact);
    expect(await lost('int8f32')).toBeLessThan((await lost('int8')) / 1.5);
  });

  it('needs no patch: it reads lengths and logits_index, in one node for queries, keys and values', async () => {
    const { directory } = writeLlama(temporaryDirectory());
    const { directory: model } = await built(directory, { precision: 'int8' });
    const { inputs, nodes } = readGraph(readFileSync(join(model, 'model.onnx')));
    expect(inputs.map(({ name }) => name).filter((name) => !name.startsWith('past_'))).toEqual([
      'input_ids',
      'continuo/seqlens_k',
      'continuo/total_sequence_length',
      'logits_index',
    ]);
    const attention = nodes.find(({ operator }) => operator === 'GroupQueryAttention');
    expect(attention?.inputs.slice(1, 3)).toEqual(['', '']);
    expect(nodes.filter(({ operator }) => operator === 'GatherBlockQuantized')).toHaveLength(1);
  });

  it('stores a tied head once, unless the checkpoint has one with other values', async () => {
    const folder = temporaryDirectory();
    const { directory, model, tensors } = writeLlama(folder, { vocabulary: 300 });
    const config = JSON.parse(readFileSync(join(directory, 'config.json'), 'utf8'));
    const apart = await built(directory, { precision: 'int8' });
    writeJson(join(directory, 'config.json'), { ...config, tie_word_embeddings: true });
    const { shape, values } = tensors['model.embed_tokens.weight']!;
    const withHead = async (last: number) => {
      const head = { shape, values: Float32Array.from(values).with(-1, last) };
      const bytes = safetensorsBytes({ ...tensors, 'lm_head.weight': head });
      writeFileSync(join(directory, 'model.safetensors'), bytes);
      return await built(directory, { precision: 'int8', directory: join(folder, `tied-${last}`) });
    };
    const tied = await withHead(values[values.length - 1]!);
    expect(tied.unusedTensors).toEqual(['lm_head.weight']);
    const levels = model.vocabulary * model.hidden;
    expect(apart.dataBytes - tied.dataBytes).toBe(levels + (levels / 32) * 4);
    await openRunner(tied.directory);
    const { unusedTensors, dataBytes } = await withHead(0.5);
    expect({ unusedTensors, dataBytes }).toEqual({ unusedTensors: [], dataBytes: apart.dataBytes });
  });

  it('leaves nothing after an interruption, and refuses to overwrite', async () => {
    const folder = temporaryDirectory();
    const { directory } = writeLlama(folder);
    const stop = new AbortController();
    const onProgress = () => stop.abort();
    await expect(built(directory, { onProgress, signal: stop.signal })).rejects.toThrow(/abort/i);
    expect(readdirSync(folder).toSorted()).toEqual(['checkpoint', 'reference']);
    const { directory: model } = await built(directory);
    expect(existsSync(join(model, 'continuo.json'))).toBe(true);
    await expect(built(directory)).rejects.toThrow('exists already');
  });

  it('writes where it came from', async () => {
    const { directory } = writeLlama(temporaryDirectory());
    const { directory: model, parameters } = await built(directory, {
      id: 'someone/Tiny-Base',
      precision: 'int4',
    });
    expect(JSON.parse(readFileSync(join(model, 'continuo.json'), 'utf8'))).toEqual({
      id: 'someone/Tiny-Base',
      source: 'checkpoint',
      modelType: 'llama',
      precision: 'int4',
      parameters,
    });
    expect(parameters).toBe(2 * 256 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64) + 64);
  });
});
