import { InferenceSession, Tensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { GraphBuilder } from '../../../../origin/export/graph/graph-builder.ts';
import { Quantizer } from '../../../../origin/export/precision/quantize.ts';
import { ROW_SCALES, withIntegerProducts } from '../../../../origin/model/onnx/integer-products.ts';
import { ElementType, readGraph } from '../../../../origin/model/onnx/onnx-graph.ts';
import { hasVnni } from '../../../../origin/model/ort/vnni.ts';
import { randomFrom } from '../../../support/random.ts';

/** Of none of these graphs. */
const INDEX = 'index';
const INPUTS = 192;
const OUTPUTS = 40;
const BLOCK = 64;

function randomFloats(stream: number, length: number): Float32Array {
  const next = randomFrom(stream);
  return Float32Array.from({ length }, () => 2 * next() - 1);
}

interface Product {
  /** [OUTPUTS, INPUTS] */
  readonly weights: Float32Array;
  readonly bias: Float32Array | null;
}

/** A graph of products of one input x [rows, INPUTS], as the builder writes them; outputs y0, y1, … */
function graphOf(products: readonly Product[]): Uint8Array {
  const graph = new GraphBuilder('unused.data');
  graph.input({ name: 'x', elementType: ElementType.float32, dimensions: ['rows', INPUTS] });
  for (const [index, { weights, bias }] of products.entries()) {
    const format = { bits: 8, blockSize: BLOCK, isRow: true } as const;
    const { levels, scales } = new Quantizer().quantize(weights, INPUTS, format);
    const blocks = INPUTS / BLOCK;
    const inputs = [
      'x',
      graph.constant(`w${index}/levels`, 'uint8', [OUTPUTS, blocks, BLOCK], [...levels]),
      graph.constant(`w${index}${ROW_SCALES}`, 'float32', [OUTPUTS, blocks], [...scales]),
    ];
    if (bias !== null) inputs.push('', '', graph.constant(`b${index}`, 'float32', [OUTPUTS], [...bias]));
    const integers = { K: INPUTS, N: OUTPUTS, bits: 8, block_size: BLOCK, accuracy_level: 4 };
    graph.node('MatMulNBits', inputs, { microsoft: true, outputs: [`y${index}`], integers });
    graph.output({ name: `y${index}`, elementType: ElementType.float32, dimensions: ['rows', OUTPUTS] });
  }
  return graph.encode('products');
}

async function run(model: Uint8Array, x: Float32Array): Promise<Record<string, Float32Array>> {
  const entries = hasVnni() === true ? {} : { x64quantprecision: '1' };
  const session = await InferenceSession.create(model, { extra: { session: entries } });
  const outputs = await session.run({ x: new Tensor('float32', x, [x.length / INPUTS, INPUTS]) });
  await session.release();
  return Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, data as Float32Array]));
}

/** The same in plain numbers: each row of x and of the weights in 255 levels of its largest magnitude. */
function expected({ weights, bias }: Product, x: Float32Array): number[] {
  const rowsOf = (values: Float32Array) =>
    Array.from({ length: values.length / INPUTS }, (_, row) => {
      const part = values.subarray(row * INPUTS, (row + 1) * INPUTS);
      const scale = Math.max(...part.map(Math.abs)) / 127;
      return { scale, levels: [...part].map((value) => (scale === 0 ? 0 : Math.round(value / scale))) };
    });
  const columns = rowsOf(weights);
  return rowsOf(x).flatMap((row) =>
    columns.map((column, output) => {
      const sum = row.levels.reduce((total, level, at) => total + level * column.levels[at]!, 0);
      return sum * row.scale * column.scale + (bias?.[output] ?? 0);
    }),
  );
}

describe('products of integers', () => {
  it('are those of plain numbers, with biases, for products that share an input', async () => {
    const products = [
      { weights: randomFloats(1, OUTPUTS * INPUTS), bias: randomFloats(2, OUTPUTS) },
      { weights: randomFloats(3, OUTPUTS * INPUTS), bias: null },
    ];
    const x = randomFloats(4, 5 * INPUTS);
    const model = graphOf(products);
    const outputs = await run(withIntegerProducts(model, readGraph(model), INDEX), x);
    for (const [index, product] of products.entries()) {
      const right = expected(product, x);
      const largest = Math.max(...right.map(Math.abs));
      for (const [at, value] of outputs[`y${index}`]!.entries())
        expect(Math.abs(value - right[at]!)).toBeLessThan(1e-5 * largest);
    }
  });

  it('do not overflow where all levels are the largest ones', async () => {
    const weights = new Float32Array(OUTPUTS * INPUTS).fill(1);
    const model = graphOf([{ weights, bias: null }]);
    const x = new Float32Array(3 * INPUTS).fill(-2);
    const { y0 } = await run(withIntegerProducts(model, readGraph(model), INDEX), x);
    for (const value of y0!) expect(value).toBeCloseTo(-2 * INPUTS, 3);
  });

  it('of a row of zeros are 0', async () => {
    const model = graphOf([{ weights: randomFloats(5, OUTPUTS * INPUTS), bias: null }]);
    const { y0 } = await run(withIntegerProducts(model, readGraph(model), INDEX), new Float32Array(INPUTS));
    expect([...y0!].map(Math.abs)).toEqual(new Array(OUTPUTS).fill(0));
  });

  it('leave weights with a scale for each block as they are', () => {
    const model = graphOf([{ weights: randomFloats(6, OUTPUTS * INPUTS), bias: null }]);
    const blocks = Buffer.from(model).toString('latin1').replaceAll(ROW_SCALES, '/blk-scales');
    const other = Buffer.from(blocks, 'latin1');
    expect(withIntegerProducts(other, readGraph(other), INDEX)).toBe(other);
  });
});
