import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { LAST_POSITIONS, LOGITS_INDEX, TOTAL_LENGTH } from '../../../origin/model/config/decoder-names.ts';

/** Runs a model.onnx with plain ONNX Runtime, for comparison with the float64 pass. */

/** Keys and values of one sequence by input name, [1, kv_heads, past, head] each. */
type Cache = Record<string, Tensor>;

export interface Prefilled {
  /** Logits [vocabulary] of every position. */
  readonly logits: readonly Float64Array[];
  readonly cache: Cache;
}

const ATTRIBUTE = new TextEncoder().encode('accuracy_level');
/** In an attribute's encoding the name is followed by this key of its integer, and then the integer. */
const INTEGER_KEY = 0x18;

/**
 * Writes the same graph with activations in single precision, where level 4 rounds them to 8 bits, and its
 * weights to `directory`. Returns the graph's path.
 */
export function writeWithExactActivations(modelPath: string, directory: string): string {
  const patched = readFileSync(modelPath);
  let found = 0;
  for (let at = patched.indexOf(ATTRIBUTE); at >= 0; at = patched.indexOf(ATTRIBUTE, at + 1)) {
    const value = at + ATTRIBUTE.length;
    if (patched[value] !== INTEGER_KEY || patched[value + 1] !== 4) continue;
    patched[value + 1] = 1;
    found++;
  }
  if (found === 0) throw new Error('the model has no accuracy level to change');
  const written = path.join(directory, path.basename(modelPath));
  writeFileSync(written, patched);
  copyFileSync(`${modelPath}.data`, `${written}.data`);
  return written;
}

const integers = (values: readonly number[], dims: readonly number[]) =>
  new Tensor('int64', BigInt64Array.from(values, BigInt), dims);

/** @param last the last position of each row */
const lengths = (last: readonly number[], total: number) => ({
  [LAST_POSITIONS]: new Tensor('int32', Int32Array.from(last), [last.length]),
  [TOTAL_LENGTH]: new Tensor('int32', Int32Array.of(total), []),
});

const isCache = (name: string) => name.startsWith('past_key_values.');

function split(logits: Tensor): Float64Array[] {
  const vocabulary = logits.dims.at(-1)!;
  const values = logits.data as Float32Array;
  return Array.from({ length: values.length / vocabulary }, (_, row) =>
    Float64Array.from(values.subarray(row * vocabulary, (row + 1) * vocabulary)),
  );
}

export class OnnxModel {
  readonly #session: InferenceSession;
  readonly #kvHeads: number;
  readonly #head: number;

  private constructor(session: InferenceSession, kvHeads: number, head: number) {
    this.#session = session;
    this.#kvHeads = kvHeads;
    this.#head = head;
  }

  static async create(modelPath: string, kvHeads: number, head: number): Promise<OnnxModel> {
    return new OnnxModel(await InferenceSession.create(modelPath), kvHeads, head);
  }

  /** One sequence from its beginning. */
  async prefill(ids: readonly number[]): Promise<Prefilled> {
    const empty = new Tensor('float32', new Float32Array(), [1, this.#kvHeads, 0, this.#head]);
    const cached = this.#session.inputNames.filter(isCache).map((name) => [name, empty]);
    const outputs = await this.#session.run({
      ...Object.fromEntries(cached),
      input_ids: integers(ids, [1, ids.length]),
      ...lengths([ids.length - 1], ids.length),
      [LOGITS_INDEX]: integers([...ids.keys()], [ids.length]),
    });
    const present = Object.entries(outputs).filter(([name]) => name.startsWith('present.'));
    const cache = Object.fromEntries(
      present.map(([name, value]) => [name.replace('present', 'past_key_values'), value]),
    );
    return { logits: split(outputs.logits!), cache };
  }

  /** Logits [vocabulary] after one more token of each row; rows may have pasts of different lengths. */
  async decode(rows: readonly { past: Cache; token: number }[]): Promise<Float64Array[]> {
    const names = this.#session.inputNames.filter(isCache);
    const pasts = rows.map(({ past }) => past[names[0]!]!.dims[2]!);
    const longest = Math.max(...pasts);
    const caches = names.map((name) => [name, this.#padded(rows, name, longest)]);
    const outputs = await this.#session.run({
      ...Object.fromEntries(caches),
      input_ids: integers(
        rows.map(({ token }) => token),
        [rows.length, 1],
      ),
      ...lengths(pasts, longest + 1),
      [LOGITS_INDEX]: integers([...rows.keys()], [rows.length]),
    });
    return split(outputs.logits!);
  }

  /** The rows' caches side by side, [rows, kv_heads, longest, head], filled up with zeros. */
  #padded(rows: readonly { past: Cache }[], name: string, longest: number): Tensor {
    const all = new Float32Array(rows.length * this.#kvHeads * longest * this.#head);
    for (const [row, { past }] of rows.entries()) {
      const source = past[name]!;
      const size = source.dims[2]! * this.#head;
      for (let kvHead = 0; kvHead < this.#kvHeads; kvHead++) {
        const values = (source.data as Float32Array).subarray(kvHead * size, (kvHead + 1) * size);
        all.set(values, (row * this.#kvHeads + kvHead) * longest * this.#head);
      }
    }
    return new Tensor('float32', all, [rows.length, this.#kvHeads, longest, this.#head]);
  }
}
