import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import koffi from 'koffi';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openCudaDriver } from '../../../../../origin/model/ort/cuda-driver.ts';
import type { OrtDeviceMemory } from '../../../../../origin/model/ort/ort-device.ts';
import { DeviceDraws } from '../../../../../origin/model/runner/device/device-draws.ts';
import { Sampler } from '../../../../../origin/sampling/sampler.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../../../shared/sampling.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../../../support/fake-cuda-driver.ts';
import { runs } from '../../../../support/random.ts';
import { originOf } from '../../../../tools/gpu/compile-kernels.ts';
import { anyHistory, anyLogits, anyMask, anyParameters } from '../../../sampling/arbitraries.ts';
import { bitsOf, historyOf, vocabularyOf, workspaceOf } from '../../../sampling/one-token.ts';
import { distribution, normalised, type Share, type Situation } from '../../../sampling/reference.ts';

/** Weights are float32 on a device. */
const ROUNDING = 1e-5;

/** Draws from these rows with draw-tokens.cu, compiled for the CPU. */
function deviceOf(rows: number, vocabularySize: number) {
  const copies = openCudaDriver(buildFakeCudaDriver().file).copies(0);
  onTestFinished(() => copies.dispose());
  const kept: Float32Array[] = [];
  const allocate = (bytes: number) => {
    kept.push(new Float32Array(new ArrayBuffer(bytes + 8)));
    return koffi.address(kept.at(-1)!);
  };
  const at = (pointer: bigint, offset: number) => pointer + BigInt(offset);
  const memory = { allocate, at } as unknown as OrtDeviceMemory;
  const logits = allocate(4 * rows * vocabularySize);
  const draws = new DeviceDraws({ memory, copies, logits, rows, vocabularySize });
  return { draws, logits: kept[0]!.subarray(0, rows * vocabularySize) };
}

interface Asked extends Pick<Situation, 'parameters' | 'logits' | 'prompt' | 'generated' | 'forbidden'> {
  readonly mask: Uint32Array | null;
  readonly listed: number | null;
}

/** Returns the sampler's request for a row. */
function requestOf({ parameters, logits, prompt, generated, forbidden, mask, listed }: Asked, step = 0) {
  const { tokenBytes } = vocabularyOf(logits.map((_, id) => `<${id}>`));
  const identity = { seed: 5, prompt: 0, choice: 0 };
  const sampler = new Sampler(parameters, identity, tokenBytes, workspaceOf(logits.length));
  const bits = sampler.restrict(mask?.slice() ?? null);
  return sampler.request(historyOf(prompt, generated), step, bits, forbidden, listed);
}

/** Whether an id has the random number in its part of the inverse CDF. */
function isDrawn(shares: readonly Share[], uniform: number, id: number): boolean {
  const before = shares.filter((share) => share.id < id).reduce((sum, { p }) => sum + p, 0);
  const own = shares.find((share) => share.id === id)?.p ?? Number.NaN;
  return before - ROUNDING <= uniform && uniform <= before + own + ROUNDING;
}

const idsOf = (mask: Uint32Array | null, size: number) =>
  mask && Array.from({ length: size }, (_, id) => id).filter((id) => mask[id >> 5]! & (1 << (id & 31)));

const SIZE = 300;

type Biases = SamplingParameters['logitBias'];

describe.runIf(hasCompiler)('draws on a device', () => {
  it('follow the plain reference with random parameters, edits and masks', () => {
    const { draws, logits: memory } = deviceOf(1, SIZE);
    const asked = fc.record({
      parameters: anyParameters(SIZE),
      logits: anyLogits(SIZE),
      prompt: anyHistory(SIZE, 12),
      generated: anyHistory(SIZE, 12),
      forbidden: fc.array(fc.nat(SIZE - 1), { maxLength: 2 }),
      mask: fc.option(anyMask(SIZE)),
      listed: fc.constant(null),
    });
    let drawn = 0;
    const property = fc.property(asked, (one) => {
      const request = requestOf(one);
      if (request === null) return;
      const situation = { ...one, mask: idsOf(one.mask, SIZE), badSequences: [], breakers: [] };
      memory.set(one.logits);
      draws.begin();
      draws.add(0, request);
      draws.run();
      const token = draws.token(0);
      expect([...memory]).toEqual(one.logits.map(Math.fround));
      if (token === null) return;
      drawn++;
      const shares = distribution(situation, 1);
      expect(isDrawn(shares, request.uniform, token.id)).toBe(true);
    });
    const numRuns = runs(400);
    fc.assert(property, { numRuns });
    expect(drawn).toBeGreaterThan(0.3 * numRuns);
  });

  const flat = Array.from({ length: 5000 }, (_, id) => ((id * 7919) % 5000) / 2500);
  const peaked = flat.map((logit, id) => (id % 1000 === 77 ? logit + 12 : logit * 3));
  const parameters: Record<string, Partial<SamplingParameters>> = {
    greedy: { temperature: 0 },
    'temperature 1': { temperature: 1 },
    'top-k 40, top-p 0.95': { temperature: 0.8, topK: 40, topP: 0.95 },
    'top-p 0.9': { topP: 0.9 },
    'top-p 0.3, min-p 0.05': { topP: 0.3, minP: 0.05 },
    'min-p 0.4': { minP: 0.4 },
    'temperature 0.1, top-p 0.99': { temperature: 0.1, topP: 0.99 },
  };
  it.each(Object.entries(parameters))('follow the reference in rows of 5,000 logits: %s', (_, changes) => {
    const rows = [flat, peaked];
    const { draws, logits: memory } = deviceOf(2, 5000);
    for (const [row, values] of rows.entries()) memory.set(values, row * 5000);
    for (let step = 0; step < 10; step++) {
      const situations = rows.map((logits) => ({
        logits,
        parameters: { ...NEUTRAL_SAMPLING, drySequenceBreakers: [], ...changes },
        prompt: [],
        generated: [],
        forbidden: [],
        mask: null,
        listed: null,
      }));
      const requests = situations.map((one) => requestOf(one, step)!);
      draws.begin();
      for (const [row, request] of requests.entries()) draws.add(row, request);
      draws.run();
      for (const [row, one] of situations.entries()) {
        const shares = distribution({ ...one, badSequences: [], breakers: [] }, 1);
        const token = draws.token(row);
        expect(token).not.toBeNull();
        expect(isDrawn(shares, requests[row]!.uniform, token!.id)).toBe(true);
      }
    }
  });

  // More logits than are sorted are within the width of a bin, and of one of its parts.
  it.each([1e-6, 1e-9])('follow the reference of top-p where logits are %d apart', (distance) => {
    const size = 6000;
    const { draws, logits: memory } = deviceOf(1, size);
    const bits = Array.from({ length: size }, (_, id) => distance * ((id * 4999) % size));
    const logits = bits.map((bit, id) => Math.fround(id === 4321 ? 5 : bit - 1e-3));
    memory.set(logits);
    const parameters = { ...NEUTRAL_SAMPLING, drySequenceBreakers: [], topP: 0.6 };
    const one = { parameters, logits, prompt: [], generated: [], forbidden: [], mask: null, listed: null };
    const shares = distribution({ ...one, badSequences: [], breakers: [] }, 1);
    for (let step = 0; step < 10; step++) {
      const request = requestOf(one, step)!;
      draws.begin();
      draws.add(0, request);
      draws.run();
      expect(isDrawn(shares, request.uniform, draws.token(0)!.id)).toBe(true);
    }
  });

  it('add up the biases of a token that has several, and forbid it if one of them does', () => {
    const { draws, logits: memory } = deviceOf(1, SIZE);
    const logits = Array.from({ length: SIZE }, (_, id) => (id === 3 ? 5 : 0));
    memory.set(logits);
    const ofSeven: Biases = [
      [7, 100],
      [7, -90],
    ];
    const logitBias: Biases = [...ofSeven, [9, null], [9, 60], [11, -100], [11, 103]];
    const parameters = { ...NEUTRAL_SAMPLING, drySequenceBreakers: [], temperature: 0, logitBias };
    const one = { parameters, logits, prompt: [], generated: [], forbidden: [], mask: null, listed: null };
    draws.begin();
    draws.add(0, requestOf(one)!);
    draws.run();
    expect(draws.token(0)!.id).toBe(7);
  });

  it('list the most likely tokens of the row without edits, and its sum', () => {
    const { draws, logits: memory } = deviceOf(1, 5000);
    memory.set(peaked);
    const parameters = { ...NEUTRAL_SAMPLING, drySequenceBreakers: [], temperature: 0, logitBias: [[9, 50]] };
    const mask = bitsOf([9, 12], 5000);
    const one = { parameters, logits: peaked, prompt: [], generated: [], forbidden: [], mask, listed: 20 };
    draws.begin();
    draws.add(0, requestOf(one as unknown as Asked)!);
    draws.run();
    const { id, scores } = draws.token(0)!;
    const ordered = peaked.map((logit, at) => [at, Math.fround(logit)] as const);
    ordered.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    expect(id).toBe(9);
    expect(scores!.top).toEqual(ordered.slice(0, 20));
    expect(scores!.logit).toBe(Math.fround(peaked[9]!));
    const sum = peaked.reduce((total, logit) => total + Math.exp(Math.fround(logit)), 0);
    expect(scores!.normalizer).toBeCloseTo(Math.log(sum), 5);
  });

  it.each([
    ['no number', Number.NaN],
    ['an infinite one', Number.POSITIVE_INFINITY],
  ])('leave rows with %s, and rows of which nothing may come, to the host', (_, logit) => {
    const { draws, logits: memory } = deviceOf(2, SIZE);
    memory.fill(1).set([logit], 17);
    const parameters = { ...NEUTRAL_SAMPLING, drySequenceBreakers: [] };
    const logits = Array.from({ length: SIZE }, () => 1);
    const one = { parameters, logits, prompt: [], generated: [], forbidden: [], mask: null, listed: null };
    draws.begin();
    draws.add(0, requestOf(one)!);
    draws.add(1, { ...requestOf(one)!, mask: new Uint32Array(10) });
    draws.run();
    expect([draws.token(0), draws.token(1)]).toEqual([null, null]);
  });
});

it('the compiled kernel is that of its source', () => {
  const read = (name: string) =>
    readFileSync(
      new URL(`../../../../../origin/model/runner/device/kernels/${name}`, import.meta.url),
      'utf8',
    );
  expect(read('draw-tokens.ptx').startsWith(originOf(read('draw-tokens.cu')))).toBe(true);
});

it('shares of a reference distribution are a partition of 1', () => {
  const shares = normalised([
    { id: 0, p: 1 },
    { id: 3, p: 3 },
  ]);
  expect([isDrawn(shares, 0.2, 0), isDrawn(shares, 0.3, 0), isDrawn(shares, 0.3, 3)]).toEqual([
    true,
    false,
    true,
  ]);
});
