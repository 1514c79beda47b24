import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RunTerminated } from '../../../origin/model/model-runner.ts';
import { float64Llama } from '../../support/float64-llama.ts';
import { decodeRows, prefillPrompt, randomTokens, syntheticRunner } from './synthetic-runner.ts';

const never = new AbortController().signal;

function largestDifference(logits: Float32Array, expected: Float64Array): number {
  expect(logits.length).toBe(expected.length);
  return logits.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
}

describe.each([
  { name: 'float32', model: {}, tolerance: 2e-5 },
  { name: 'float32 with position ids', model: { positionIds: true }, tolerance: 2e-5 },
  { name: 'as many KV heads as heads', model: { kvHeads: 4 }, tolerance: 2e-5 },
  { name: 'float16', model: { precision: 'float16' }, tolerance: 5e-3 },
] as const)('logits match a float64 forward pass: $name', ({ model, tolerance }) => {
  it('after a prefill in chunks and after each of several decode steps', async () => {
    const { runner, directory } = await syntheticRunner(model, { prefillChunk: 16 });
    const tokens = randomTokens(45, 3);
    const expected = float64Llama.load(join(directory, 'model.onnx')).forward([...tokens]);
    const prompt = tokens.subarray(0, 39);
    expect(largestDifference(await prefillPrompt(runner, 2, prompt), expected[38]!)).toBeLessThan(tolerance);
    for (let position = 39; position < tokens.length; position++) {
      const [logits] = await decodeRows(runner, 2, [{ token: tokens[position]!, position }]);
      expect(largestDifference(logits!, expected[position]!)).toBeLessThan(tolerance);
    }
  });

  it('at every requested position', async () => {
    const { runner, directory } = await syntheticRunner(model);
    const tokens = randomTokens(20, 8);
    const expected = float64Llama.load(join(directory, 'model.onnx')).forward([...tokens]);
    const logitsAt = Int32Array.of(0, 1, 7, 19);
    const logits = await runner.prefill({ slot: 0, start: 0, tokens, logitsAt }, never);
    for (const [row, position] of logitsAt.entries()) {
      const one = logits.subarray(row * 256, (row + 1) * 256);
      expect(largestDifference(one, expected[position]!)).toBeLessThan(tolerance);
    }
  });
});

/**
 * MatMulNBits rounds activations to 8 bits, both in the kernel and in the reference. If a value lies on the
 * edge between two levels, the last bit of a sum decides, and later logits differ by about 0.03. A prompt of
 * five tokens rounds about 3,000 values with a probability near 2e-5 each, so most prompts must agree to
 * float32's precision.
 */
describe.each([{ quantization: 'q8' }, { quantization: 'q4' }] as const)(
  'logits of a $quantization model',
  (model) => {
    it('match a float64 forward pass unless an activation lies on a rounding edge', async () => {
      const { runner, directory } = await syntheticRunner(model);
      const reference = float64Llama.load(join(directory, 'model.onnx'));
      const differences: number[] = [];
      for (let seed = 0; seed < 16; seed++) {
        const tokens = randomTokens(5, seed);
        const expected = reference.forward([...tokens], { roundActivations: true });
        const prefilled = await prefillPrompt(runner, 1, tokens.subarray(0, 4));
        const [decoded] = await decodeRows(runner, 1, [{ token: tokens[4]!, position: 4 }]);
        differences.push(
          Math.max(largestDifference(prefilled, expected[3]!), largestDifference(decoded!, expected[4]!)),
        );
      }
      expect(differences.filter((difference) => difference < 2e-5).length).toBeGreaterThanOrEqual(12);
      expect(Math.max(...differences)).toBeLessThan(0.1);
    });
  },
);

it('external and internal weights give the same bits', async () => {
  const prompt = randomTokens(40, 1);
  const inside = await syntheticRunner({});
  const beside = await syntheticRunner({ externalData: true });
  expect(await prefillPrompt(beside.runner, 0, prompt)).toEqual(
    await prefillPrompt(inside.runner, 0, prompt),
  );
});

it('prompts of one run have the KV and logits of runs of their own, and go on after them', async () => {
  const { runner } = await syntheticRunner({ quantization: 'q8' }, { slots: 5 });
  const { vocabularySize, prefillChunk } = runner.shape;
  const prompts = [2, 13, prefillChunk / 2, 3].map((length, seed) => randomTokens(length, seed));
  const chunks = prompts.map((tokens, index) => {
    const logitsAt = index === 1 ? Int32Array.of(0, 7, 12) : Int32Array.of(tokens.length - 1);
    return { slot: index + 1, start: 0, tokens, logitsAt };
  });
  const kvOf = ({ slot, tokens }: (typeof chunks)[number]) => {
    const bytes = Buffer.alloc(tokens.length * runner.kvBytes.positionBytes);
    runner.kvBytes.read(slot, 0, tokens.length, bytes);
    return bytes;
  };
  const decoded = () =>
    decodeRows(
      runner,
      1,
      prompts.map(({ length }) => ({ token: 9, position: length })),
    );
  const apart: Float32Array[] = [];
  for (const chunk of chunks) apart.push((await runner.prefill(chunk, never)).slice());
  const expected = { kv: chunks.map(kvOf), next: await decoded() };
  for (const { slot } of chunks) await prefillPrompt(runner, slot, randomTokens(40, slot));
  const together = (await runner.prefillTogether!(chunks, never)).slice();
  expect([...together]).toEqual(apart.flatMap((logits) => [...logits]));
  expect(together).toHaveLength(6 * vocabularySize);
  expect({ kv: chunks.map(kvOf), next: await decoded() }).toEqual(expected);
});

describe('a slot', () => {
  it('gives the same bits in every slot and after any earlier contents of the slot', async () => {
    const { runner } = await syntheticRunner({ quantization: 'q8' });
    const prompt = randomTokens(77, 1);
    const clean = await prefillPrompt(runner, 0, prompt);
    await prefillPrompt(runner, 3, randomTokens(400, 2));
    expect(await prefillPrompt(runner, 3, prompt)).toEqual(clean);
    const next = { token: 9, position: 77 };
    const [first] = await decodeRows(runner, 0, [next]);
    const [second] = await decodeRows(runner, 3, [next]);
    expect(second).toEqual(first);
  });

  it('gives the same bits after a copied prefix as after a whole prefill', async () => {
    const { runner } = await syntheticRunner({}, { prefillChunk: 32 });
    const prompt = randomTokens(70, 4);
    const whole = await prefillPrompt(runner, 0, prompt);
    await prefillPrompt(runner, 1, randomTokens(200, 5));
    runner.copy(0, 1, 64);
    const tail = { slot: 1, start: 64, tokens: prompt.subarray(64), logitsAt: Int32Array.of(5) };
    expect((await runner.prefill(tail, never)).slice()).toEqual(whole);
  });

  it('is not changed by runs and copies in neighbouring slots', async () => {
    const { runner } = await syntheticRunner();
    const prompt = randomTokens(300, 6);
    await prefillPrompt(runner, 1, prompt);
    const next = { token: 3, position: 300 };
    const [before] = await decodeRows(runner, 1, [next]);
    await prefillPrompt(runner, 0, randomTokens(512, 7));
    await prefillPrompt(runner, 2, randomTokens(512, 8));
    runner.copy(0, 2, 512);
    expect(await decodeRows(runner, 1, [next])).toEqual([before]);
  });

  it('can be filled to the last position of the context', async () => {
    const { runner, directory } = await syntheticRunner({ contextLength: 64 });
    const tokens = randomTokens(64, 9);
    await prefillPrompt(runner, 3, tokens.subarray(0, 63));
    const [logits] = await decodeRows(runner, 3, [{ token: tokens[63]!, position: 63 }]);
    const expected = float64Llama.load(join(directory, 'model.onnx')).forward([...tokens]);
    expect(largestDifference(logits!, expected[63]!)).toBeLessThan(2e-5);
  });
});

describe('an aborted prefill', () => {
  const slow = { layers: 6, hidden: 128, headSize: 32, intermediate: 512, contextLength: 1025 };

  it('rejects with RunTerminated before all layers are computed, and the next run is correct', async () => {
    const { runner } = await syntheticRunner(slow, { slots: 2, prefillChunk: 1024 });
    const next = { token: 1, position: 1024 };
    const chunk = { slot: 0, start: 0, tokens: randomTokens(1024, 1), logitsAt: new Int32Array() };
    await runner.prefill(chunk, never);
    const [complete] = await decodeRows(runner, 0, [next]);
    await runner.prefill({ ...chunk, tokens: randomTokens(1024, 2) }, never);

    const controller = new AbortController();
    const run = runner.prefill(chunk, controller.signal);
    setImmediate(() => controller.abort());
    await expect(run).rejects.toThrow(RunTerminated);
    expect(await decodeRows(runner, 0, [next])).not.toEqual([complete]);

    await runner.prefill(chunk, never);
    expect(await decodeRows(runner, 0, [next])).toEqual([complete]);
  });

  it('does not run if the signal was aborted before', async () => {
    const { runner } = await syntheticRunner();
    const chunk = { slot: 0, start: 0, tokens: Int32Array.of(1), logitsAt: new Int32Array() };
    await expect(runner.prefill(chunk, AbortSignal.abort())).rejects.toThrow(RunTerminated);
  });
});

describe('a decode run with a signal', () => {
  const rows = Array.from({ length: 8 }, (_, slot) => ({ slot, token: slot, position: 40 + slot }));
  const batch = {
    firstSlot: 0,
    rows: rows.length,
    tokens: Int32Array.from(rows, ({ token }) => token),
    positions: Int32Array.from(rows, ({ position }) => position),
  };

  async function filled() {
    const { runner } = await syntheticRunner(
      { layers: 6, hidden: 128, headSize: 32, intermediate: 512 },
      { slots: 8 },
    );
    for (const { slot, position } of rows) await prefillPrompt(runner, slot, randomTokens(position, slot));
    return runner;
  }

  it('has the bits of one without, and does not block the event loop', async () => {
    const runner = await filled();
    const expected = (await runner.decode(batch)).slice();
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    // The first run may end before the loop has turned once.
    for (let run = 0; run < 3; run++) {
      expect((await runner.decode(batch, never)).slice()).toEqual(expected);
    }
    expect(turned).toBe(true);
  });

  it('rejects with RunTerminated if it is stopped, and can be made again with the same bits', async () => {
    const runner = await filled();
    const expected = (await runner.decode(batch)).slice();
    // A run may be done before it can be stopped.
    let failure: unknown = null;
    for (let run = 0; failure === null && run < 100; run++) {
      const controller = new AbortController();
      const decoded = Promise.resolve(runner.decode(batch, controller.signal));
      controller.abort();
      failure = await decoded.then(
        () => null,
        (error: unknown) => error,
      );
    }
    expect(failure).toBeInstanceOf(RunTerminated);
    expect((await runner.decode(batch)).slice()).toEqual(expected);
  });
});

it('a prefill does not block the event loop', async () => {
  const { runner } = await syntheticRunner({}, { prefillChunk: 512 });
  const chunk = { slot: 0, start: 0, tokens: randomTokens(512, 1), logitsAt: new Int32Array() };
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  await runner.prefill(chunk, never);
  expect(turned).toBe(true);
});

describe('misuse', () => {
  it('is refused: any call during a run, and after dispose', async () => {
    const { runner } = await syntheticRunner();
    const chunk = { slot: 0, start: 0, tokens: randomTokens(30, 1), logitsAt: new Int32Array() };
    const run = runner.prefill(chunk, never);
    expect(() => runner.copy(0, 1, 1)).toThrow('running');
    await expect(decodeRows(runner, 0, [{ token: 1, position: 0 }])).rejects.toThrow('running');
    await run;
    runner.dispose();
    expect(() => runner.copy(0, 1, 1)).toThrow('disposed');
  });

  it('does not crash: dispose during a prefill waits for its end', async () => {
    const { runner } = await syntheticRunner({ contextLength: 512 }, { prefillChunk: 512 });
    const chunk = { slot: 0, start: 0, tokens: randomTokens(512, 1), logitsAt: new Int32Array() };
    const run = runner.prefill(chunk, never);
    runner.dispose();
    await run;
    await expect(runner.prefill(chunk, never)).rejects.toThrow('disposed');
  });
});
