import { LOWEST_LOGPROB, MAX_TOP_LOGPROBS } from '@continuo/shared/logprob.ts';
import type { LogitRows } from '../../model-runner.ts';
import { ElementType } from '../../onnx/onnx-graph.ts';
import {
  BEFORE_NEXT,
  NEXT,
  NEXT_LOGPROB,
  ROW,
  ROW_INDEX,
  rowGraph,
  SCORED_LOGITS,
  scoreGraph,
  TOP_IDS,
  TOP_LOGITS,
  TOP_LOGPROBS,
} from '../../onnx/score-graph.ts';
import { arrayTensor, type DeviceTensor, type Pointer } from '../../ort/bound-tensors.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import { OrtSession } from '../../ort/ort-session.ts';
import type { PromptScores } from '../runner-options.ts';

/** Most bytes of the logits that one run scores, and most of their rows. */
const MAX_BYTES = 32 * 2 ** 20;
const MAX_ROWS = 256;
/** Bytes per logit: the logits, and what scoring makes of them: their log-softmax, counts and four masks. */
const BYTES_PER_LOGIT = 4 + 4 + 4 + 4;
/** Listed beyond what is asked for, so that equal logits at the end of a list rarely need a whole row. */
const BESIDE = 12;

/** Returns the rows of logits that one run scores at most. */
export const maxScored = (vocabularySize: number): number =>
  Math.max(1, Math.min(MAX_ROWS, Math.floor(MAX_BYTES / (4 * vocabularySize))));

/** Returns the memory of a device that `DeviceScores` takes. */
export const scoreBytes = (vocabularySize: number): number =>
  maxScored(vocabularySize) * vocabularySize * BYTES_PER_LOGIT;

/** The most likely tokens of a row, best first. */
interface Listed {
  readonly ids: BigInt64Array;
  readonly logits: Float32Array;
}

interface ScoreParts {
  /** The session whose logits are scored. Not owned. */
  readonly session: OrtSession;
  readonly memory: OrtDeviceMemory;
  readonly vocabularySize: number;
}

/**
 * Scores tokens by rows of logits on a device: a graph computes there what main memory needs of each row, a
 * few hundred bytes instead of half a megabyte. It is a session of its own, because the memory of a session
 * that replays CUDA graphs must not change.
 */
export class DeviceScores implements PromptScores {
  readonly maxRows: number;
  readonly #parts: ScoreParts;
  readonly #logits: Pointer;
  readonly #scorer: OrtSession;
  readonly #rows: OrtSession;
  readonly #top: number;
  #disposed = false;

  constructor(parts: ScoreParts) {
    const { session, memory, vocabularySize } = parts;
    this.#parts = parts;
    this.maxRows = maxScored(vocabularySize);
    this.#top = Math.min(vocabularySize, MAX_TOP_LOGPROBS + BESIDE);
    this.#logits = memory.allocate(4 * this.maxRows * vocabularySize);
    this.#scorer = sessionBeside(session, scoreGraph(vocabularySize, this.#top));
    try {
      this.#rows = sessionBeside(session, rowGraph(vocabularySize));
    } catch (error) {
      this.#scorer.dispose();
      throw error;
    }
  }

  logits(rows: number): DeviceTensor {
    return {
      memory: this.#parts.memory.info,
      address: this.#logits,
      elementType: ElementType.float32,
      elementBytes: 4,
      dimensions: [rows, this.#parts.vocabularySize],
    };
  }

  score(next: Int32Array): LogitRows {
    const { api } = this.#scorer;
    const [rows, listed] = [next.length, next.length * this.#top];
    const results = {
      [NEXT_LOGPROB]: floats(rows),
      [BEFORE_NEXT]: floats(rows),
      [TOP_LOGITS]: floats(listed),
      [TOP_LOGPROBS]: floats(listed),
    };
    const ids = new BigInt64Array(new ArrayBuffer(8 * listed));
    using binding = this.#scorer.bound((bound) => {
      bound.input(SCORED_LOGITS, this.logits(rows));
      bound.input(NEXT, arrayTensor(api, BigInt64Array.from(next, BigInt), [rows, 1]));
      for (const [name, values] of Object.entries(results))
        bound.output(name, arrayTensor(api, values, [rows, values.length / rows]));
      bound.output(TOP_IDS, arrayTensor(api, ids, [rows, this.#top]));
    });
    this.#scorer.run(binding);
    const of = <T extends Float32Array | BigInt64Array>(values: T, row: number) =>
      values.subarray(row * this.#top, (row + 1) * this.#top) as T;
    return {
      row: (row) => this.#bring(row, rows),
      score: (row, top) => {
        const logprob = results[NEXT_LOGPROB][row]!;
        if (Number.isNaN(logprob)) return null;
        const listedOf = { ids: of(ids, row), logits: of(results[TOP_LOGITS], row) };
        const places = this.#mostLikely(listedOf, top);
        if (places === null) return null;
        const logprobs = of(results[TOP_LOGPROBS], row);
        const best = places.map((at) => [Number(listedOf.ids[at]), asLogprob(logprobs[at]!)] as const);
        return { logprob: asLogprob(logprob), rank: 1 + results[BEFORE_NEXT][row]!, top: best };
      },
    };
  }

  /**
   * Returns the places of the `top` most likely tokens in the list, lower ids first if equal, because devices
   * list equal logits in any order. Null if a token beyond the list may be as likely as the last of them.
   */
  #mostLikely({ ids, logits }: Listed, top: number): readonly number[] | null {
    const most = Math.min(top, this.#parts.vocabularySize);
    const isAll = this.#top === this.#parts.vocabularySize;
    if (!isAll && most > 0 && logits[most - 1] === logits.at(-1)) return null;
    const places = Array.from(logits.keys());
    places.sort((a, b) => logits[b]! - logits[a]! || Number(ids[a]! - ids[b]!));
    return places.slice(0, most);
  }

  #bring(row: number, rows: number): Float32Array {
    if (this.#disposed) throw new Error('the session has been disposed');
    const { api } = this.#rows;
    const { vocabularySize } = this.#parts;
    const logits = floats(vocabularySize);
    using binding = this.#rows.bound((bound) => {
      bound.input(SCORED_LOGITS, this.logits(rows));
      bound.input(ROW_INDEX, arrayTensor(api, BigInt64Array.of(BigInt(row)), [1]));
      bound.output(ROW, arrayTensor(api, logits, [1, vocabularySize]));
    });
    this.#rows.run(binding);
    return logits;
  }

  /** Call before the memory is disposed. */
  dispose(): void {
    this.#disposed = true;
    this.#rows.dispose();
    this.#scorer.dispose();
  }
}

const asLogprob = (value: number): number => Math.max(LOWEST_LOGPROB, value);

const floats = (length: number) => new Float32Array(new ArrayBuffer(4 * length));

/** Opens a session on the device of another one, which captures no graphs and owns the stream. */
function sessionBeside({ api, device, turns }: OrtSession, model: Uint8Array): OrtSession {
  const { stream: _, ...withoutStream } = { stream: undefined, ...device };
  const plain = withoutStream.provider === 'cuda' ? { ...withoutStream, graphs: false } : withoutStream;
  return new OrtSession(api, model, { threads: 1, directory: '', device: plain, turns });
}
