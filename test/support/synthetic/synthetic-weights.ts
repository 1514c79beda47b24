import { floatsOf } from '../../../origin/export/graph/float-type.ts';
import type { SyntheticModel } from './llama-graph.ts';
import { type Attribute, MICROSOFT, type OnnxWriter } from './onnx-writer.ts';
import { quantizeBlocks, quantizeFloats, quantizeTensor, transpose, WeightSource } from './random-weights.ts';

/** A weight quantised in blocks, and the operator that multiplies by it. */
interface Blocks {
  readonly operator: string;
  readonly weight: string;
  readonly scales: string;
  readonly attributes: Readonly<Record<string, Attribute>>;
}

/** The random weights of a synthetic model and the linear layers over them, in each kind of quantisation. */
export class SyntheticWeights {
  /** Prefix of output names, so that the names of two branches differ. */
  scope = '';
  readonly random: WeightSource;
  readonly #writer: OnnxWriter;
  readonly #model: SyntheticModel;
  readonly #ofFirstLayer = new Map<string, ArrayBufferView>();

  constructor(writer: OnnxWriter, model: SyntheticModel) {
    this.#writer = writer;
    this.#model = model;
    this.random = new WeightSource(model.seed);
  }

  /** Both branches of a merged model read the weights that the first one added. */
  once(name: string, write: () => void): string {
    if (!this.#writer.has(name)) write();
    return name;
  }

  /** Multiplies the input by a random matrix [rows, columns]. */
  linear(
    product: string,
    input: string,
    rows: number,
    columns: number,
    output = `${this.scope}${product}.out`,
  ): string {
    const { quantization, sharesLayers } = this.#model;
    const name = sharesLayers ? product.replace(/\blayers\.\d+/, 'layers.0') : product;
    const random = () => this.random.normal(rows * columns, 1 / Math.sqrt(rows));
    if (quantization === 'none' && this.#model.packed) {
      const weight = this.once(`${name}.weight`, () => this.#matrix(name, [columns, rows], random));
      const options = { domain: MICROSOFT, attributes: { transB: { int: 1 } } };
      return this.#writer.node('FusedMatMul', [input, weight], [output], options);
    }
    if (quantization === 'none') {
      const weight = this.once(`${name}.weight`, () =>
        this.floats(`${name}.weight`, [rows, columns], transpose(random(), columns, rows)),
      );
      return this.#writer.node('MatMul', [input, weight], [output]);
    }
    if (quantization === 'int8-dynamic') {
      const weight = this.once(`${name}.weight_quantized`, () => {
        const { levels, scale } = quantizeTensor(transpose(random(), columns, rows));
        this.#writer.initializer(`${name}.weight_quantized`, 'int8', [rows, columns], levels);
        this.#writer.initializer(`${name}.weight_scale`, 'float32', [], Float32Array.of(scale));
      });
      return this.#dynamicLinear(name, input, weight, output);
    }
    const { operator, weight, scales, attributes } =
      quantization === 'bnb4'
        ? this.#floatBlocks(name, random)
        : this.#wholeBlocks(name, rows, columns, random);
    const { block } = this.#model;
    return this.#writer.node(operator, [input, weight, scales], [output], {
      domain: MICROSOFT,
      attributes: { K: { int: rows }, N: { int: columns }, block_size: { int: block }, ...attributes },
    });
  }

  #matrix(name: string, shape: readonly number[], random: () => Float32Array): string {
    const { precision, repeatsLayers } = this.#model;
    if (!repeatsLayers) return this.floats(`${name}.weight`, shape, random());
    const first = name.replace(/\blayers\.\d+/, 'layers.0');
    const values = this.#ofFirstLayer.get(first) ?? floatsOf(precision, random());
    this.#ofFirstLayer.set(first, values);
    return this.#writer.initializer(`${name}.weight`, precision, shape, values);
  }

  /** Levels of bitsandbytes' 4-bit float. */
  #floatBlocks(name: string, random: () => Float32Array): Blocks {
    const { block } = this.#model;
    const scales = `${name}.weight_absmax`;
    const weight = this.once(`${name}.weight_Bnb4`, () => {
      const { packed, largest } = quantizeFloats(random(), block);
      this.#writer.initializer(`${name}.weight_Bnb4`, 'uint8', [packed.length], packed);
      this.floats(scales, [largest.length], largest);
    });
    return { operator: 'MatMulBnb4', weight, scales, attributes: { quant_type: { int: 0 } } };
  }

  /** Integers of 4 or 8 bits. */
  #wholeBlocks(name: string, rows: number, columns: number, random: () => Float32Array): Blocks {
    const { quantization, block, precision, accuracyLevel } = this.#model;
    const bits = quantization === 'q4' ? 4 : 8;
    const scales = `${name}.weight_scales`;
    const weight = this.once(`${name}.weight_Q${bits}`, () => {
      const { packed, scales: values } = quantizeBlocks(random(), bits, block);
      const shape = [columns, rows / block, (block * bits) / 8];
      this.#writer.initializer(`${name}.weight_Q${bits}`, 'uint8', shape, packed);
      this.floats(scales, [values.length], values);
    });
    const level = precision === 'float32' ? accuracyLevel : 0;
    const attributes = { bits: { int: bits }, accuracy_level: { int: level } };
    return { operator: 'MatMulNBits', weight, scales, attributes };
  }

  /** Quantizes activations to 8 bits with one scale per tensor, as ONNX Runtime's dynamic one does. */
  #dynamicLinear(name: string, input: string, weight: string, output: string): string {
    const part = (suffix: string) => `${this.scope}${name}.${suffix}`;
    const [levels, scale, zero] = [part('levels'), part('scale'), part('zero')] as const;
    this.#writer.node('DynamicQuantizeLinear', [input], [levels, scale, zero]);
    const whole = this.#writer.node('MatMulInteger', [levels, weight, zero], [part('whole')]);
    const product = this.#writer.node('Cast', [whole], [part('product')], { attributes: { to: { int: 1 } } });
    const scales = this.#writer.node('Mul', [scale, `${name}.weight_scale`], [part('scales')]);
    return this.#writer.node('Mul', [product, scales], [output]);
  }

  floats(name: string, dimensions: readonly number[], values: Float32Array): string {
    const { precision } = this.#model;
    if (this.#writer.has(name)) return name;
    return this.#writer.initializer(name, precision, dimensions, floatsOf(precision, values));
  }
}
