import { readFileSync } from 'node:fs';
import { type DrawEdits, type DrawnToken, type DrawRequest, EDIT_AMOUNTS } from '../../device-draws.ts';
import type { Pointer } from '../../ort/bound-tensors.ts';
import type { CudaCopies, CudaWork, HostMemory } from '../../ort/cuda-copies.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';

const KERNELS = new URL('./kernels/draw-tokens.ptx', import.meta.url);
const KERNEL_THREADS = { draw_tokens: 1024, feed_tokens: 32 };

/** All rows of a run together have at most this many edits. */
const MAX_EDITS = 65_536;

/** Bytes of the structures of draw-tokens.cu. */
const [REQUEST, EDIT, RESULT] = [64, 48, 192] as const;
const MOST_LISTED = 20;
const NONE = -1;

interface DeviceDrawsOptions {
  readonly memory: OrtDeviceMemory;
  readonly copies: CudaCopies;
  /** The rows on the device. */
  readonly logits: Pointer;
  readonly rows: number;
  readonly vocabularySize: number;
}

/** Where the inputs of the next run lie on the device, by row. */
export interface RunInputs {
  /** int64 */
  readonly tokens: Pointer;
  /** int64 */
  readonly positions: Pointer;
  /** int32 */
  readonly lastPositions: Pointer;
  /** Positions of a row. */
  readonly contextLength: number;
}

/** A part of the memory of requests and results. */
interface Part {
  readonly at: number;
  readonly bytes: number;
}

const after = ({ at, bytes: before }: Part, bytes: number): Part => ({ at: at + before, bytes });

/** Draws tokens from rows of logits on a CUDA card. */
export class DeviceDraws {
  readonly #options: DeviceDrawsOptions;
  readonly #kernels: ReturnType<typeof loadKernels>;
  readonly #host: HostMemory;
  readonly #view: DataView;
  readonly #device: Pointer;
  readonly #parts: Readonly<Record<'results' | 'requests' | 'edits' | 'masks', Part>>;
  /** Words of a mask. */
  readonly #words: number;
  #count = 0;
  #edits = 0;
  #masks = 0;

  constructor(options: DeviceDrawsOptions) {
    const { memory, copies, rows, vocabularySize } = options;
    this.#options = options;
    this.#words = Math.ceil(vocabularySize / 32);
    const results = { at: 0, bytes: RESULT * rows };
    const requests = after(results, REQUEST * rows);
    const edits = after(requests, EDIT * MAX_EDITS);
    const masks = after(edits, 4 * this.#words * rows);
    this.#parts = { results, requests, edits, masks };
    this.#kernels = loadKernels(copies);
    const bytes = masks.at + masks.bytes;
    this.#device = memory.allocate(bytes);
    this.#host = copies.hostMemory(bytes);
    this.#view = new DataView(this.#host.bytes.buffer, this.#host.bytes.byteOffset, bytes);
  }

  /** Forgets the requests of the last run. */
  begin(): void {
    this.#count = 0;
    this.#edits = 0;
    this.#masks = 0;
  }

  /** Adds a request. Returns its index; −1 if there is no room for its edits. */
  add(row: number, request: DrawRequest): number {
    const { isGreedy, coldness, uniform, topK, share, ratio, minKeep, listed, edits, mask } = request;
    const edited = edits?.ids.length ?? 0;
    if (this.#edits + edited > MAX_EDITS) return NONE;
    const view = this.#view;
    const at = this.#parts.requests.at + REQUEST * this.#count;
    for (const [index, number] of [uniform, coldness, share, ratio].entries())
      view.setFloat64(at + 8 * index, number, true);
    const masked = mask === null ? NONE : this.#addMask(mask);
    const integers = [row, topK, minKeep, Number(isGreedy), this.#edits, edited, masked, listed ?? NONE];
    for (const [index, number] of integers.entries()) view.setInt32(at + 32 + 4 * index, number, true);
    if (edits !== null) this.#addEdits(edits);
    return this.#count++;
  }

  #addMask(mask: Uint32Array): number {
    const { at } = this.#parts.masks;
    const { buffer, byteOffset } = this.#host.bytes;
    const words = this.#words;
    new Uint32Array(buffer, byteOffset + at + 4 * words * this.#masks, words).set(mask.subarray(0, words));
    return this.#masks++;
  }

  #addEdits({ ids, forbidden, amounts }: DrawEdits): void {
    const view = this.#view;
    for (const [index, id] of ids.entries()) {
      const at = this.#parts.edits.at + EDIT * this.#edits++;
      for (let amount = 0; amount < EDIT_AMOUNTS; amount++)
        view.setFloat64(at + 8 * amount, amounts[EDIT_AMOUNTS * index + amount]!, true);
      view.setInt32(at + 32, id, true);
      view.setInt32(at + 36, forbidden[index]!, true);
    }
  }

  /** Draws the tokens of all requests. The logits stay as they are. */
  run(): void {
    if (this.#count > 0) this.#options.copies.perform((work) => this.draw(work));
  }

  /** Begins the draws of all requests, of which there is one at least. */
  draw(work: CudaWork): void {
    const { logits, vocabularySize } = this.#options;
    const { requests, edits, masks } = this.#parts;
    const used = [
      { at: requests.at, bytes: REQUEST * this.#count },
      { at: edits.at, bytes: EDIT * this.#edits },
      { at: masks.at, bytes: 4 * this.#words * this.#masks },
    ];
    for (const { at, bytes } of used) {
      if (bytes === 0) continue;
      const from = { where: 'host', address: this.#host.address + BigInt(at), pitch: bytes } as const;
      work.copy(from, { where: 'device', address: this.#onDevice({ at }), pitch: bytes }, bytes, 1);
    }
    const parts = [requests, edits, masks].map((part) => this.#onDevice(part));
    const values = [logits, ...parts, this.#results, BigInt(vocabularySize)];
    work.launch(this.#kernels.draw_tokens, [this.#count, 1], values);
  }

  /** Gives the tokens to the next run, once they are drawn. Its other inputs stay as they are. */
  feed(work: CudaWork, { tokens, positions, lastPositions, contextLength }: RunInputs): void {
    const request = this.#onDevice(this.#parts.requests);
    const values = [request, this.#results, tokens, positions, lastPositions, BigInt(contextLength)];
    work.launch(this.#kernels.feed_tokens, [this.#count, 1], values);
  }

  #onDevice({ at }: Pick<Part, 'at'>): Pointer {
    return this.#options.memory.at(this.#device, at);
  }

  /** Kernels address page-locked memory as the host does. */
  get #results(): Pointer {
    return this.#host.address + BigInt(this.#parts.results.at);
  }

  /** Returns the id that a request of the last run has drawn; −1 if the host must draw it. */
  id(index: number): number {
    const at = this.#parts.results.at + RESULT * index;
    return this.#view.getInt32(at, true) === 0 ? NONE : this.#view.getInt32(at + 4, true);
  }

  /** Returns the token of a request of the last run; null if the host must draw it. */
  token(index: number): DrawnToken | null {
    const view = this.#view;
    const at = this.#parts.results.at + RESULT * index;
    const id = this.id(index);
    if (id === NONE) return null;
    const listed = view.getInt32(this.#parts.requests.at + REQUEST * index + 60, true);
    if (listed === NONE) return { id, scores: null };
    const top = Array.from({ length: view.getInt32(at + 8, true) }, (_, rank): [number, number] => [
      view.getInt32(at + 32 + 4 * rank, true),
      view.getFloat32(at + 32 + 4 * (MOST_LISTED + rank), true),
    ]);
    const normalizer = view.getFloat32(at + 16, true) + Math.log(view.getFloat64(at + 24, true));
    return { id, scores: { logit: view.getFloat32(at + 12, true), normalizer, top } };
  }
}

const loadKernels = (copies: CudaCopies) => copies.load(readFileSync(KERNELS, 'utf8'), KERNEL_THREADS);
