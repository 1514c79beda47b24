import { LruMap } from '@continuo/shared/lru-map.ts';
import { LAST_POSITIONS, LOGITS_INDEX, TOTAL_LENGTH } from '../config/decoder-names.ts';
import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import {
  computedRows,
  type DecodeBatch,
  type KvBytes,
  type LogitRows,
  type ModelRunner,
  type ModelShape,
  type PrefillChunk,
  type SlotStates,
} from '../model-runner.ts';
import type { RunBinding } from '../ort/bound-tensors.ts';
import { arrayTensor, type BoundTensor, type Elements, type RunSession } from '../ort/bound-tensors.ts';
import { RunGuard } from '../ort/run-guard.ts';
import { type BatchInputs, DecodeInputs, PrefillInputs } from './batch-inputs.ts';
import { KvCache, type KvStore } from './kv-cache.ts';
import {
  inOrdinaryMemory,
  keptLogitRows,
  MAX_PREFILL_CHUNKS,
  MAX_PROMPT_LOGITS,
  type PromptScores,
  type RunnerOptions,
} from './runner-options.ts';
import { type BegunRun, HostStates, StateCache, type StatePlace } from './state-cache.ts';
import type { TokenEmbedder } from './token-embedder.ts';

/** Maximum of cached bindings, one per recent slot range; each costs a few kilobytes. */
const MAX_BINDINGS = 64;

const WITHOUT_STATES: BegunRun = { from: 0, begun: [] };

/** What a runner can only know after it has been probed. */
export type ProbedShape = Partial<
  Pick<ModelShape, 'minRows' | 'rowMultiple' | 'maxPrefillChunks' | 'joinsPrompts'>
>;

/** Sequences, and tokens of each. */
type Dimensions = readonly [sequences: number, tokens: number];
type Logits = Float32Array<ArrayBuffer>;

/**
 * A ModelRunner over ONNX Runtime with the KV cache updated in place. Owns the session.
 *
 * On the CPU the bits of a decode row do not depend on its slot, the total length, the number of threads (1
 * or 2) or the other rows, if the run has at least `minRows` and a `rowMultiple`. This holds for float32,
 * float16, and 4-bit and 8-bit MatMulNBits. The logits of a prefill position do not depend on the other
 * requested positions. ONNX Runtime does not promise this, so its version is pinned, tests check it, and the
 * start probes it. It does not hold between prefill and decode, between two splits into chunks, or for
 * models that quantize activations per tensor.
 */
export class OrtRunner implements ModelRunner {
  #shape: ModelShape;
  readonly #session: RunSession;
  readonly #decoder: DecoderInterface;
  readonly #logitsName: string;
  readonly #cache: KvStore;
  /** Null if slots are their KV. */
  readonly #states: StateCache | null;
  readonly #decodeInputs: DecodeInputs;
  readonly #prefillInputs: PrefillInputs;
  readonly #embedder: TokenEmbedder | null;
  readonly #logits: Logits;
  #scores: PromptScores | null;
  /** By slot range and place of the states. */
  readonly #bindings = new LruMap<number, RunBinding>();
  readonly #guard = new RunGuard(() => this.#release());

  constructor(
    session: RunSession,
    {
      decoder,
      logits,
      layout,
      prefillChunk,
      cache,
      states,
      embedder = null,
      scores = null,
      allocateLogits = inOrdinaryMemory,
    }: RunnerOptions,
  ) {
    const { slots, contextLength } = layout;
    const { vocabularySize } = decoder;
    // A device copies its own memory in a fraction of a step.
    const ofDevice = cache ? { maxCopied: contextLength, maxPromptLogits: MAX_PROMPT_LOGITS } : {};
    const scored = scores === null ? {} : { maxScored: scores.maxRows };
    this.#shape = { vocabularySize, contextLength, slots, prefillChunk, minRows: 1, ...ofDevice, ...scored };
    this.#session = session;
    this.#decoder = decoder;
    this.#logitsName = logits;
    this.#cache = cache ?? new KvCache(session.api, decoder, layout);
    const stateMemory = () => states ?? new HostStates(session.api, decoder.states, slots);
    this.#states = decoder.states.length === 0 ? null : new StateCache(stateMemory(), decoder.states, slots);
    this.#decodeInputs = new DecodeInputs(slots, contextLength);
    this.#prefillInputs = new PrefillInputs(slots, MAX_PREFILL_CHUNKS * prefillChunk);
    this.#embedder = embedder;
    this.#scores = scores;
    this.#logits = allocateLogits(keptLogitRows(layout, prefillChunk) * vocabularySize);
  }

  get shape(): ModelShape {
    return this.#shape;
  }

  get kvBytes(): KvBytes {
    return this.#cache;
  }

  get states(): SlotStates | null {
    return this.#states;
  }

  /** Adds what probes have found to the shape. */
  addProbed(found: ProbedShape): void {
    this.#shape = { ...this.#shape, ...found };
  }

  /** After this, prompts are scored from whole rows. Call if the device scores otherwise. */
  dropScores(): void {
    this.#scores = null;
    const { maxScored: _, ...shape } = this.#shape;
    this.#shape = shape;
  }

  /** Runs on the calling thread, or with a signal as a prefill does. */
  decode(batch: DecodeBatch): Float32Array;
  decode(batch: DecodeBatch, signal?: AbortSignal): Float32Array | Promise<Float32Array>;
  decode(batch: DecodeBatch, signal?: AbortSignal): Float32Array | Promise<Float32Array> {
    this.#guard.requireIdle();
    const { rows, firstSlot } = batch;
    this.#decodeInputs.fill(batch);
    this.#embedder?.embed(batch.tokens, rows);
    const logits = this.#logits.subarray(0, rows * this.shape.vocabularySize);
    const { from, begun } = this.#states?.begin(firstSlot, batch.positions, rows) ?? WITHOUT_STATES;
    const binding = this.#decodeBinding(firstSlot, rows, logits, from);
    if (this.#session.copiesInputs) this.#bindInputs(binding, this.#decodeInputs, [rows, 1]);
    const finish = () => this.#endRows(batch, begun, logits);
    if (signal) return this.#guard.run(() => this.#session.runAsync(binding, signal).then(finish));
    this.#session.run(binding);
    return finish();
  }

  #endRows({ firstSlot, positions }: DecodeBatch, begun: readonly boolean[], logits: Logits): Logits {
    const { vocabularySize } = this.shape;
    for (const [row, isBegun] of begun.entries()) {
      if (isBegun) this.#states?.end(firstSlot + row, positions[row]! + 1);
      else logits.fill(Number.NaN, row * vocabularySize, (row + 1) * vocabularySize);
    }
    return logits;
  }

  /** Runs on a pool thread. An abort stops it within one operator. */
  prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    return this.prefillTogether([chunk], signal);
  }

  /** As `prefill`. Attention ignores the padding of a prompt, and later tokens overwrite its KV. */
  prefillTogether(chunks: readonly PrefillChunk[], signal: AbortSignal): Promise<Float32Array> {
    return this.#guard.run(async () => {
      const { dimensions, wanted } = this.#fillPrompts(chunks);
      const logits = this.#logitsFor(wanted === 0 ? 0 : computedRows(this.shape, wanted));
      await this.#runPrompts(chunks, dimensions, this.#rows(logits), signal);
      return logits.subarray(0, wanted * this.shape.vocabularySize);
    });
  }

  score(chunks: readonly PrefillChunk[], next: Int32Array, signal: AbortSignal): Promise<LogitRows> {
    return this.#guard.run(async () => {
      const scores = this.#scores;
      const { dimensions, wanted } = this.#fillPrompts(chunks);
      if (scores === null || wanted > scores.maxRows) throw new RangeError(`${wanted} rows to score`);
      await this.#runPrompts(chunks, dimensions, scores.logits(wanted), signal);
      return scores.score(next);
    });
  }

  #fillPrompts(chunks: readonly PrefillChunk[]): {
    readonly dimensions: Dimensions;
    readonly wanted: number;
  } {
    const [{ tokens, images }] = chunks as [PrefillChunk];
    const { sequences, length, logits: wanted } = this.#prefillInputs.fill(chunks);
    this.#embedder?.embed(tokens, tokens.length, images);
    return { dimensions: [sequences, length], wanted };
  }

  async #runPrompts(
    chunks: readonly PrefillChunk[],
    dimensions: Dimensions,
    logits: BoundTensor,
    signal: AbortSignal,
  ): Promise<void> {
    const from = this.#beginPrompts(chunks);
    using binding = this.#bind(this.#prefillInputs, dimensions, chunks[0]!.slot, logits, from);
    await this.#session.runAsync(binding, signal);
    for (const { slot, start, tokens } of chunks) this.#states?.end(slot, start + tokens.length);
  }

  /** @throws Error if the slot has no state of the chunk's start, or would get one of padding */
  #beginPrompts(chunks: readonly PrefillChunk[]): StatePlace {
    if (this.#states === null) return 0;
    if (chunks.length > 1) throw new Error('padding would change the states of joined prompts');
    const [{ slot, start }] = chunks as [PrefillChunk];
    const { from, begun } = this.#states.begin(slot, [start], 1);
    if (!begun[0]) throw new Error(`slot ${slot} has no state of position ${start}`);
    return from;
  }

  copy(from: number, to: number, end: number, start?: number): void {
    this.#guard.requireIdle();
    if (from !== to) this.#cache.copy(from, to, end, start);
  }

  /** Releases native memory now, or after the current prefill. */
  dispose(): void {
    this.#guard.dispose();
  }

  #release(): void {
    for (const binding of this.#bindings.values()) binding.dispose();
    this.#bindings.clear();
    this.#embedder?.dispose();
    this.#session.dispose();
  }

  #decodeBinding(firstSlot: number, rows: number, logits: Logits, from: StatePlace): RunBinding {
    const { slots } = this.shape;
    const key = 2 * (firstSlot * (slots + 1) + rows) + from;
    const bound = this.#bindings.get(key);
    if (bound !== undefined) return bound;
    const binding = this.#bind(this.#decodeInputs, [rows, 1], firstSlot, this.#rows(logits), from);
    this.#bindings.set(key, binding);
    this.#bindings.trim(
      () => this.#bindings.size > MAX_BINDINGS,
      (unused) => unused.dispose(),
    );
    return binding;
  }

  #logitsFor(rows: number): Logits {
    const length = rows * this.shape.vocabularySize;
    return length > this.#logits.length ? inOrdinaryMemory(length) : this.#logits.subarray(0, length);
  }

  /** @param logits where the run leaves them, as many rows as it computes */
  #bind(
    inputs: BatchInputs,
    dimensions: Dimensions,
    firstSlot: number,
    logits: BoundTensor,
    from: StatePlace,
  ): RunBinding {
    return this.#session.bound((binding) => {
      this.#bindInputs(binding, inputs, dimensions);
      binding.input(LOGITS_INDEX, this.#tensor(inputs.logitsIndex, logits.dimensions.slice(0, 1)));
      binding.output(this.#logitsName, logits);
      this.#cache.bind(binding, firstSlot, dimensions[0]);
      this.#states?.bind(binding, firstSlot, dimensions[0], from);
    });
  }

  #bindInputs(binding: RunBinding, inputs: BatchInputs, dimensions: Dimensions): void {
    const { tokenInput, positionIds } = this.#decoder;
    binding.input(tokenInput, this.#tokens(inputs.tokens, dimensions));
    if (positionIds !== null) binding.input(positionIds, this.#tensor(inputs.positions, dimensions));
    binding.input(LAST_POSITIONS, this.#tensor(inputs.lastPositions, [dimensions[0]]));
    binding.input(TOTAL_LENGTH, this.#tensor(inputs.totalLength, []));
  }

  /** Binds the ids, or the vectors of the embedder. */
  #tokens(ids: BigInt64Array<ArrayBuffer>, dimensions: readonly number[]): BoundTensor {
    return this.#embedder?.vectors(dimensions) ?? this.#tensor(ids, dimensions);
  }

  #rows(logits: Logits): BoundTensor {
    const { vocabularySize } = this.shape;
    return this.#tensor(logits, [logits.length / vocabularySize, vocabularySize]);
  }

  #tensor(array: Elements, dimensions: readonly number[]): BoundTensor {
    return arrayTensor(this.#session.api, array, dimensions);
  }
}
