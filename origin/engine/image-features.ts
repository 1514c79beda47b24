import { ApiError } from '../../shared/errors.ts';
import { FairMutex } from '../fair-mutex.ts';
import type { EmbeddedImage } from '../model/model-runner.ts';
import type { Submission, SubmittedImage } from './messages.ts';

/** [3, height, width] to [positions, width of a vector]; one call at a time. */
export type EncodeImage = (pixels: Float32Array<ArrayBuffer>, signal: AbortSignal) => Promise<Float32Array>;

/** Bytes of vectors kept for images that come again: about thirty of 576 positions of 4,096. */
const KEPT_FEATURES = 256 * 2 ** 20;

/**
 * The vectors of submissions' images, encoded beside the decode loop, one image after the other: a request with many gives
 * way to others after each, and tenants take turns. What has been encoded lately is kept, by the same
 * rules as KV: never across tenants or cache keys, and not for requests that want no cache.
 */
export class ImageFeatures {
  readonly #encode: EncodeImage;
  readonly #mostBytes: number;
  /** Least recently used first. */
  readonly #kept = new Map<string, Float32Array>();
  #bytes = 0;
  readonly #mutex = new FairMutex();

  constructor(encode: EncodeImage, mostBytes = KEPT_FEATURES) {
    this.#encode = encode;
    this.#mostBytes = mostBytes;
  }

  /**
   * What stands where in each prompt.
   * @throws ApiError upstream_error when the encoder fails; anything once the signal was aborted
   */
  async of(submission: Submission, signal: AbortSignal): Promise<EmbeddedImage[][]> {
    const { prompts, cachePrompt, cacheKey, tenantId } = submission;
    const placed: EmbeddedImage[][] = [];
    for (const { images = [] } of prompts) {
      const one: EmbeddedImage[] = [];
      for (const image of images) {
        const key = cachePrompt ? JSON.stringify([cacheKey, image.key]) : null;
        const vectors = await this.#mutex.run({ tenantId, signal }, () => this.#vectors(image, key, signal));
        one.push({ at: image.at, count: image.count, vectors });
      }
      placed.push(one);
    }
    return placed;
  }

  async #vectors({ pixels }: SubmittedImage, key: string | null, signal: AbortSignal): Promise<Float32Array> {
    const kept = key === null ? undefined : this.#kept.get(key);
    if (kept !== undefined && key !== null) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept;
    }
    const vectors = await this.#encode(pixels, signal).catch(() => {
      throw new ApiError('upstream_error', 'The model failed while reading an image of this request.');
    });
    if (key !== null) this.#keep(key, vectors);
    return vectors;
  }

  #keep(key: string, vectors: Float32Array): void {
    this.#kept.set(key, vectors);
    this.#bytes += vectors.byteLength;
    for (const [oldest, { byteLength }] of this.#kept) {
      if (this.#bytes <= this.#mostBytes) return;
      this.#kept.delete(oldest);
      this.#bytes -= byteLength;
    }
  }
}
