import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Float64Llama, float64Llama, type Variation } from '../../support/float64-llama.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { OnnxModel, writeWithExactActivations } from './onnx-logits.ts';

/**
 * The built-in model's ONNX graph against an independent forward pass in doubles.
 *
 * The shipped graph rounds activations to 8 bits (accuracy level 4), which moves log-probabilities by some
 * hundredths. So the graph's structure is checked tightly on a copy that keeps activations in single
 * precision, and the shipped graph with a tolerance for that rounding. Emulating the rounding would not
 * tighten it: a value that falls to the other side of a half changes how all layers above it round.
 */

const FOLDER = path.join(import.meta.dirname, '../../../origin/models/continuo-mini');
const MODEL = path.join(FOLDER, 'model.onnx');

/** Largest difference of any log-probability; single precision was seen to cause 1e-5. */
const EXACT = 1e-4;
/** Root mean square and largest difference; rounding was seen to cause 0.033 and 0.16. */
const ROUNDED = { typical: 0.07, largest: 0.4 };

const json = (name: string) => JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'));
const tokenizer = new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'));
const encode = (text: string) => tokenizer.encode(text, { add_special_tokens: false }).ids;

const STORY = encode('Once upon a time there was a miller who had three sons.');
const CODE = encode('def fibonacci(n):\n    if n < 2:\n        return n\n    return ');
/** Every part of the vocabulary, in no order that training has seen; 200 tokens. */
const ARBITRARY = Array.from({ length: 200 }, (_, i) => (i * i * 7 + i * 31 + 5) % 4096);

function logSoftmax(logits: Float64Array): Float64Array {
  const top = logits.reduce((most, value) => Math.max(most, value));
  const total = top + Math.log(logits.reduce((sum, value) => sum + Math.exp(value - top), 0));
  return logits.map((value) => value - total);
}

/** Differences of log-probabilities over all positions and tokens. */
function difference(a: readonly Float64Array[], b: readonly Float64Array[]) {
  let [largest, squares, count] = [0, 0, 0];
  for (const [position, row] of a.entries()) {
    const other = logSoftmax(b[position]!);
    for (const [id, value] of logSoftmax(row).entries()) {
      const apart = Math.abs(value - other[id]!);
      largest = Math.max(largest, apart);
      squares += apart * apart;
      count++;
    }
  }
  return { largest, typical: Math.sqrt(squares / count) };
}

let reference: Float64Llama;
let shipped: OnnxModel;
let exact: OnnxModel;

beforeAll(async () => {
  const { num_key_value_heads: kvHeads, head_dim: head } = json('config.json');
  const copy = newDirectory();
  reference = float64Llama.load(MODEL);
  shipped = await OnnxModel.create(MODEL, kvHeads, head);
  exact = await OnnxModel.create(writeWithExactActivations(MODEL, copy), kvHeads, head);
});

describe('the built-in model matches a float64 forward pass', () => {
  test.for([
    ['one token', [17]],
    ['a sentence', STORY],
    ['code', CODE],
    ['200 arbitrary tokens', ARBITRARY],
  ] as const)('for %s', async ([, ids]) => {
    const expected = reference.forward(ids);
    const bySinglePrecision = difference((await exact.prefill(ids)).logits, expected);
    expect(bySinglePrecision.largest).toBeLessThan(EXACT);
    const asShipped = difference((await shipped.prefill(ids)).logits, expected);
    expect(asShipped.typical).toBeLessThan(ROUNDED.typical);
    expect(asShipped.largest).toBeLessThan(ROUNDED.largest);
  });

  test('for rows of different lengths that are decoded together', async () => {
    const prompts = [STORY, CODE, STORY.slice(0, 3)];
    const pasts = await Promise.all(prompts.map((ids) => exact.prefill(ids.slice(0, -1))));
    const rows = prompts.map((ids, i) => ({ past: pasts[i]!.cache, token: ids.at(-1)! }));
    const expected = prompts.map((ids) => reference.forward(ids).at(-1)!);
    expect(difference(await exact.decode(rows), expected).largest).toBeLessThan(EXACT);
  });
});

describe('the comparison detects', () => {
  const mistakes: readonly (readonly [string, Variation])[] = [
    ['queries rotated by one position too many', { queryShift: 1 }],
    ['rotation of neighbouring channels', { rotateNeighbours: true }],
    ['heads that read the wrong key-value head', { alternateKvHeads: true }],
    ['no norm before the first attention', { withoutNorm: 0 }],
    ['no norm before the third attention', { withoutNorm: 2 }],
    ['another epsilon in the norms', { epsilon: 1e-2 }],
  ];

  test.for(mistakes)('%s', async ([, mistake]) => {
    const mistaken = reference.forward(STORY, mistake);
    expect(difference((await exact.prefill(STORY)).logits, mistaken).largest).toBeGreaterThan(50 * EXACT);
  });

  test('a gross mistake in the shipped graph', async () => {
    const { logits } = await shipped.prefill(STORY);
    for (const [name, mistake] of mistakes.slice(0, -1)) {
      const { typical } = difference(logits, reference.forward(STORY, mistake));
      expect(typical, name).toBeGreaterThan(2 * ROUNDED.typical);
    }
  });
});
