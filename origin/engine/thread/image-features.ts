import { ApiError } from '@continuo/shared/errors.ts';
import { LruMap } from '@continuo/shared/lru-map.ts';
import type { EmbeddedImage } from '../../model/model-runner.ts';
import { FairMutex } from '../../process/fair-mutex.ts';
import type { Submission, SubmittedImage } from '../messages.ts';

/** Encodes [3, height, width] to [positions, width of a vector]; one call at a time. */
type EncodeImage = (pixels: Float32Array<ArrayBuffer>, signal: AbortSignal) => Promise<Float32Array>;

/** Bytes of cached vectors: about thirty images of 576 positions × 4,096 floats. */
const MAX_CACHED_BYTES = 256 * 2 ** 20;

/**
 * Encodes the images of submissions concurrently with the decode loop, one at a time. Tenants share the time
 * by their weights. Caches recent vectors by the rules of the prefix cache: never across tenants or cache
 * keys, and not with `cachePrompt` off.
 */
export class ImageFeatures {
  readonly #encode: EncodeImage;
  readonly #maxBytes: number;
  readonly #cached = new LruMap<string, Float32Array>();
  #bytes = 0;
  readonly #mutex = new FairMutex();

  constructor(encode: EncodeImage, maxBytes = MAX_CACHED_BYTES) {
    this.#encode = encode;
    this.#maxBytes = maxBytes;
  }

  /**
   * Returns the image vectors of each prompt.
   * @throws ApiError upstream_error if the encoder fails; the signal's reason once it is aborted
   */
  async of(submission: Submission, signal: AbortSignal): Promise<EmbeddedImage[][]> {
    const { prompts, cachePrompt, cacheNamespace, tenantId, weight } = submission;
    const caller = { tenantId, weight, signal };
    const placed: EmbeddedImage[][] = [];
    for (const { images = [] } of prompts) {
      const ofPrompt: EmbeddedImage[] = [];
      for (const image of images) {
        const key = cachePrompt ? JSON.stringify([cacheNamespace, image.key]) : null;
        const vectors = await this.#mutex.run(caller, () => this.#vectors(image, key, signal));
        ofPrompt.push({ at: image.at, count: image.count, vectors });
      }
      placed.push(ofPrompt);
    }
    return placed;
  }

  async #vectors({ pixels }: SubmittedImage, key: string | null, signal: AbortSignal): Promise<Float32Array> {
    const cached = key === null ? undefined : this.#cached.get(key);
    if (cached !== undefined) return cached;
    const vectors = await this.#encode(pixels, signal).catch(() => {
      throw new ApiError('upstream_error', 'The model failed while encoding an image of this request.');
    });
    if (key !== null) this.#cache(key, vectors);
    return vectors;
  }

  #cache(key: string, vectors: Float32Array): void {
    this.#cached.set(key, vectors);
    this.#bytes += vectors.byteLength;
    this.#cached.trim(
      () => this.#bytes > this.#maxBytes,
      ({ byteLength }) => (this.#bytes -= byteLength),
    );
  }
}
