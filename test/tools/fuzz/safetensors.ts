import { readHeader } from '../../../origin/export/checkpoint/safetensors-header.ts';
import { ModelError } from '../../../origin/model/config/model-json.ts';
import { withHeader } from '../../origin/export/written-checkpoint.ts';
import { mulberry32 } from '../../support/random.ts';

/** Damaged and lying safetensors headers: each must be read within the file or refused by name. */

export interface HeaderFuzzReport {
  readonly violations: readonly string[];
  readonly accepted: number;
  readonly refused: number;
}

const NAMES = ['model.embed_tokens.weight', 'lm_head.weight', 'model.norm.weight', '__proto__', 'ünï.☃'];
const ODD_NUMBERS = [-1, 0, 0.5, 1, 2 ** 31, 2 ** 53, 2 ** 53 - 1, 1e308, '8', null, [], {}, true];
const ODD_TYPES = ['F32', 'BF16', 'F7', '', 'toString', '__proto__', 3, null];

export async function fuzzHeaders(count: number, seed: number): Promise<HeaderFuzzReport> {
  const random = mulberry32(seed);
  const violations: string[] = [];
  let [accepted, refused] = [0, 0];
  for (let index = 0; index < count; index++) {
    const file = damagedFile(random);
    const outcome = await outcomeOf(file);
    if (outcome === 'accepted') accepted++;
    else if (outcome === 'refused') refused++;
    else
      violations.push(
        `case ${index} of seed ${seed}: ${outcome}; file ${Buffer.from(file).toString('base64')}`,
      );
  }
  return { violations, accepted, refused };
}

/** Returns what happened, or what is wrong with it. */
async function outcomeOf(file: Uint8Array): Promise<string> {
  let read = 0;
  const readBytes = async (position: number, length: number) => {
    read += length;
    if (position + length > file.length) throw new Error(`read beyond the end: ${position} + ${length}`);
    return file.slice(position, position + length);
  };
  try {
    const tensors = await readHeader('weights.safetensors', file.length, readBytes);
    const outside = tensors.find(
      ({ offset, bytes }) => !(offset >= 8 && bytes >= 0 && offset + bytes <= file.length),
    );
    if (outside !== undefined) return `tensor ${outside.name} is outside of the file`;
  } catch (error) {
    if (!(error instanceof ModelError)) return `throws ${String(error)}`;
    if (!error.message.startsWith('weights.safetensors') || error.message.includes('\n')) {
      return `does not name the file in one line: ${error.message}`;
    }
    return read > file.length ? `reads ${read} of ${file.length} bytes` : 'refused';
  }
  return read > file.length ? `reads ${read} of ${file.length} bytes` : 'accepted';
}

function damagedFile(random: () => number): Uint8Array {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const header: Record<string, Record<string, unknown>> = {};
  let at = 0;
  for (const name of NAMES.filter(() => random() < 0.7)) {
    const shape = Array.from({ length: 1 + Math.floor(random() * 2) }, () => Math.floor(random() * 5));
    const bytes = shape.reduce((product, size) => product * size, 4);
    const entry = { dtype: 'F32', shape, data_offsets: [at, at + bytes] };
    Object.defineProperty(header, name, { value: entry, enumerable: true });
    at += bytes;
  }
  const entries = Object.values(header);
  if (entries.length > 0 && random() < 0.6) lie(pick(entries), random, pick);
  return damagedBytes(Buffer.from(withHeader(header, Buffer.alloc(at))), random);
}

function lie(
  entry: Record<string, unknown>,
  random: () => number,
  pick: <T>(values: readonly T[]) => T,
): void {
  const offsets = entry.data_offsets as number[];
  const shape = entry.shape as number[];
  const lies: readonly (() => void)[] = [
    () => (offsets[pick([0, 1])] = pick(ODD_NUMBERS) as number),
    () => (offsets[pick([0, 1])]! += Math.floor(random() * 64) - 32),
    () => (shape[0] = pick(ODD_NUMBERS) as number),
    () => shape.push(...Array.from({ length: pick([1, 3, 200]) }, () => pick([0, 1, 2 ** 20]))),
    () => (entry.dtype = pick(ODD_TYPES)),
    () => (entry.data_offsets = pick(ODD_NUMBERS)),
    () => delete entry[pick(['dtype', 'shape', 'data_offsets'])],
  ];
  pick(lies)();
}

/** Most files keep their bytes; others are cut, extended, or have some bytes changed. */
function damagedBytes(file: Buffer, random: () => number): Uint8Array {
  const kind = random();
  const at = () => Math.floor(random() * file.length);
  if (kind < 0.4) return new Uint8Array(file);
  if (kind < 0.55) return new Uint8Array(file.subarray(0, at()));
  if (kind < 0.65) return new Uint8Array(Buffer.concat([file, Buffer.alloc(1 + Math.floor(random() * 40))]));
  for (let change = 0; change < 1 + random() * 4; change++) {
    const place = kind < 0.75 ? Math.floor(random() * 8) : at();
    file[place] = Math.floor(random() * 256);
  }
  return new Uint8Array(file);
}
