import { arrayTensor, type BoundTensor } from '../ort/bound-tensors.ts';
import type { OrtSession } from '../ort/ort-session.ts';
import { RunGuard } from '../ort/run-guard.ts';

interface EncoderOptions {
  /** float32 [1, 3, height, width]. */
  readonly input: string;
  readonly height: number;
  readonly width: number;
  /** float32 with `outputRank` dimensions; the last one is `size`. */
  readonly output: string;
  readonly outputRank: number;
  /** int64 [outputRank]: the dimensions of the output. */
  readonly shape: string;
  /** Width of one vector. */
  readonly size: number;
}

/**
 * Encodes one image per run into the vectors that replace its token, so that no image's bits depend on
 * another. Owns the session of vision_encoder.
 */
export class ImageEncoder {
  /** Vectors of one image = positions in the prompt. */
  readonly positions: number;
  readonly height: number;
  readonly width: number;
  readonly #session: OrtSession;
  readonly #options: EncoderOptions;
  readonly #guard: RunGuard;

  /** Runs the graph once to learn its output size. @throws Error that completes "vision_encoder.onnx …" */
  constructor(session: OrtSession, options: EncoderOptions) {
    this.#session = session;
    this.#guard = new RunGuard(() => session.dispose());
    this.#options = options;
    this.height = options.height;
    this.width = options.width;
    const sizes = this.#outputSizes();
    this.positions = sizes.at(-2)!;
    if (sizes.at(-1) !== options.size || sizes.slice(0, -2).some((count) => count !== 1)) {
      throw new Error(
        `gives ${options.output} of ${sizes.join(' × ')}; expected one image of width ${options.size}`,
      );
    }
  }

  /**
   * @param pixels [3, height, width]
   * @returns [positions, size]
   * @throws RunTerminated if the signal was aborted
   */
  encode(pixels: Float32Array<ArrayBuffer>, signal: AbortSignal): Promise<Float32Array> {
    const { input, output, outputRank, size } = this.#options;
    return this.#guard.run(async () => {
      const vectors = new Float32Array(new ArrayBuffer(4 * this.positions * size));
      using binding = this.#session.createBinding();
      binding.input(input, this.#pixels(pixels));
      const dimensions = [...Array<number>(outputRank - 2).fill(1), this.positions, size];
      binding.output(output, arrayTensor(this.#session.api, vectors, dimensions));
      await this.#session.runAsync(binding, signal);
      return vectors;
    });
  }

  /** Releases native memory now, or after the current run. */
  dispose(): void {
    this.#guard.dispose();
  }

  #outputSizes(): number[] {
    const { input, shape, outputRank, height, width } = this.#options;
    const sizes = new BigInt64Array(new ArrayBuffer(8 * outputRank));
    const black = new Float32Array(new ArrayBuffer(4 * 3 * height * width));
    using binding = this.#session.createBinding();
    binding.input(input, this.#pixels(black));
    binding.output(shape, arrayTensor(this.#session.api, sizes, [outputRank]));
    this.#session.run(binding);
    return Array.from(sizes, Number);
  }

  #pixels(pixels: Float32Array<ArrayBuffer>): BoundTensor {
    return arrayTensor(this.#session.api, pixels, [1, 3, this.height, this.width]);
  }
}
