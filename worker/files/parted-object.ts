/** Bytes of a part: R2's minimum. All parts but the last must have the same size. */
export const PART_BYTES = 5 * 1024 * 1024;

/**
 * Writes a stream of unknown length to one R2 object, which appears when it is complete. Holds one part in
 * memory.
 */
export class PartedObject {
  readonly #bucket: R2Bucket;
  readonly #key: string;
  readonly #options: R2MultipartOptions;
  readonly #part = new Uint8Array(PART_BYTES);
  readonly #uploaded: R2UploadedPart[] = [];
  #filled = 0;
  #upload: R2MultipartUpload | null = null;

  constructor(bucket: R2Bucket, key: string, options: R2MultipartOptions) {
    this.#bucket = bucket;
    this.#key = key;
    this.#options = options;
  }

  get size(): number {
    return this.#uploaded.length * PART_BYTES + this.#filled;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length; ) {
      if (this.#filled === PART_BYTES) await this.#flush();
      const taken = bytes.subarray(from, from + PART_BYTES - this.#filled);
      this.#part.set(taken, this.#filled);
      this.#filled += taken.length;
      from += taken.length;
    }
  }

  async complete(): Promise<R2Object> {
    if (this.#upload === null) {
      return this.#bucket.put(this.#key, this.#part.subarray(0, this.#filled), this.#options);
    }
    await this.#flush();
    return this.#upload.complete(this.#uploaded);
  }

  async abort(): Promise<void> {
    await this.#upload?.abort();
  }

  async #flush(): Promise<void> {
    this.#upload ??= await this.#bucket.createMultipartUpload(this.#key, this.#options);
    const part = this.#part.subarray(0, this.#filled);
    this.#uploaded.push(await this.#upload.uploadPart(this.#uploaded.length + 1, part));
    this.#filled = 0;
  }
}
