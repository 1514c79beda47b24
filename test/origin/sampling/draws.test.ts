import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DRAW_TOKEN, DrawSource } from '../../../origin/sampling/rng.ts';
import { Sampler } from '../../../origin/sampling/sampler.ts';
import type { SamplerWorkspace } from '../../../origin/sampling/workspace.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import { runs } from '../../support/random.ts';
import { anyLogits, anyParameters } from './arbitraries.ts';
import { chiSquare, chiSquareLimit } from './chi-square.ts';
import { bitsOf, historyOf, vocabularyOf, workspaceOf } from './one-token.ts';
import { distribution, drawn, normalised, type Share, softmax } from './reference.ts';

const SIZE = 30;
const { tokenBytes } = vocabularyOf(Array.from({ length: SIZE }, (_, id) => String.fromCharCode(97 + id)));
const LOGITS = Array.from({ length: SIZE }, (_, id) => Math.round(40 * Math.sin(id * id)) / 16);

function samplerOf(
  parameters: Partial<SamplingParameters>,
  seed: number,
  workspace: SamplerWorkspace,
): Sampler {
  const identity = { seed, prompt: 0, choice: 0 };
  return new Sampler({ ...NEUTRAL_SAMPLING, ...parameters }, identity, tokenBytes, workspace);
}

describe('tokens drawn over many steps', () => {
  const configurations: Partial<SamplingParameters>[] = [
    {},
    { temperature: 0.6 },
    { temperature: 1.7, topK: 9 },
    { topP: 0.8 },
    { minP: 0.1 },
    { typicalP: 0.7 },
    { topNSigma: 1.2 },
    { dynatempRange: 0.6, topP: 0.95 },
    { logitBias: [[3, 2]], topK: 20, topP: 0.9, minP: 0.02 },
  ];
  it.each(configurations)('follow the reference distribution with %j', (changes) => {
    const parameters = { ...NEUTRAL_SAMPLING, ...changes };
    const none = { prompt: [], generated: [], mask: null, forbidden: [], badSequences: [], breakers: [] };
    const expected = distribution({ parameters, logits: LOGITS, ...none }, 1);
    const sampler = samplerOf(parameters, 20_26, workspaceOf(SIZE));
    const history = historyOf([], []);
    const row = Float32Array.from(LOGITS);
    const counts = new Array<number>(SIZE).fill(0);
    for (let step = 0; step < 30_000; step++) counts[sampler.sample(row, history, step, null, [])]!++;
    const observed = expected.map(({ id }) => counts[id]!);
    expect(observed.reduce((total, count) => total + count)).toBe(30_000);
    const statistic = chiSquare(
      observed,
      expected.map(({ p }) => p),
    );
    expect(statistic).toBeLessThan(chiSquareLimit(Math.max(1, expected.length - 1)));
  });

  it('exclude top choices as often as xtc_probability says', () => {
    const parameters = { xtcProbability: 0.3, xtcThreshold: 0.2 };
    const sampler = samplerOf(parameters, 5, workspaceOf(SIZE));
    const row = Float32Array.from(LOGITS, (_, id) => (id < 2 ? 1 - id * 0.1 : -30));
    let excluded = 0;
    const workspace = workspaceOf(SIZE);
    const watched = samplerOf(parameters, 5, workspace);
    const history = historyOf([], []);
    for (let step = 0; step < 10_000; step++) {
      expect(watched.sample(row, history, step, null, [])).toBe(sampler.sample(row, history, step, null, []));
      if (workspace.candidates.ids[0] !== 0) excluded++;
    }
    expect(chiSquare([excluded, 10_000 - excluded], [0.3, 0.7])).toBeLessThan(chiSquareLimit(1));
  });
});

describe('a sampler', () => {
  const anyCase = fc.record({
    parameters: anyParameters(SIZE),
    mirostat: fc.constantFrom(0 as const, 0 as const, 1 as const, 2 as const),
    seed: fc.maxSafeInteger(),
    rows: fc.array(anyLogits(SIZE), { minLength: 1, maxLength: 8 }),
    forbidden: fc.array(fc.nat(SIZE - 1), { maxLength: 1 }),
    mask: fc.option(fc.uniqueArray(fc.nat(SIZE - 1), { minLength: 1 }), { freq: 4 }),
  });

  /** Runs one step per call. Returns the error's name if a row has no candidate. */
  function* generation(
    trial: typeof anyCase extends fc.Arbitrary<infer T> ? T : never,
    workspace: SamplerWorkspace,
  ) {
    const { parameters, mirostat, seed, rows, forbidden, mask } = trial;
    const sampler = samplerOf({ ...parameters, dryMultiplier: 0.5, mirostat }, seed, workspace);
    const history = historyOf([1, 2, 3], []);
    const bits = mask && bitsOf(mask, SIZE);
    for (const [step, row] of rows.entries()) {
      try {
        const token = sampler.sample(Float32Array.from(row), history, step, bits, forbidden);
        history.push(token);
        yield token;
      } catch (error) {
        yield (error as Error).name;
      }
    }
  }

  it('draws the same tokens if others use its workspace in between', () => {
    fc.assert(
      fc.property(fc.array(anyCase, { minLength: 2, maxLength: 4 }), (cases) => {
        const shared = workspaceOf(SIZE);
        const alone = cases.map((trial) => [...generation(trial, workspaceOf(SIZE))]);
        const running = cases.map((trial) => generation(trial, shared));
        const together: (string | number)[][] = cases.map(() => []);
        for (let step = 0; step < 8; step++) {
          running.forEach((sequence, i) => {
            const next = sequence.next();
            if (!next.done) together[i]!.push(next.value);
          });
        }
        expect(together).toEqual(alone);
      }),
      { numRuns: runs(200) },
    );
  });

  it('follows Mirostat’s bound over a whole generation as the plain reference does', () => {
    const trial = fc.record({
      version: fc.constantFrom(1 as const, 2 as const),
      temperature: fc.constantFrom(0.5, 1, 1.6),
      mirostatTau: fc.double({ min: 0, max: 6, noNaN: true }),
      mirostatEta: fc.double({ min: 0, max: 1, noNaN: true }),
      seed: fc.maxSafeInteger(),
      rows: fc.array(fc.array(fc.integer({ min: -5000, max: 5000 }), { minLength: SIZE, maxLength: SIZE }), {
        maxLength: 12,
      }),
    });
    fc.assert(
      fc.property(trial, ({ version, seed, rows, ...parameters }) => {
        const sampler = samplerOf({ ...parameters, mirostat: version }, seed, workspaceOf(SIZE));
        const draws = new DrawSource({ seed, prompt: 0, choice: 0 });
        const history = historyOf([], []);
        let bound = 2 * parameters.mirostatTau;
        for (const [step, row] of rows.entries()) {
          const logits = row.map((z) => z / 1024);
          const shares = softmax(logits, parameters.temperature);
          const kept = version === 1 ? keptByRank(shares, bound) : keptBySurprise(shares, bound);
          const expected = drawn(kept, draws.uniform(step, DRAW_TOKEN));
          expect(sampler.sample(Float32Array.from(logits), history, step, null, [])).toBe(expected);
          const surprise = -Math.log2(kept.find(({ id }) => id === expected)!.p);
          bound -= parameters.mirostatEta * (surprise - parameters.mirostatTau);
        }
      }),
      { numRuns: runs(300) },
    );
  });
});

const byProbability = (shares: readonly Share[]) => shares.toSorted((a, b) => b.p - a.p || a.id - b.id);

function keptBySurprise(shares: readonly Share[], bound: number): Share[] {
  return normalised(byProbability(shares).filter(({ p }, rank) => rank === 0 || -Math.log2(p) <= bound));
}

function keptByRank(shares: readonly Share[], bound: number): Share[] {
  const p = byProbability(shares).map((share) => share.p);
  const pairs = p.slice(0, -1).map((likelier, i) => ({
    t: Math.log((i + 2) / (i + 1)),
    b: Math.log(likelier / p[i + 1]!),
  }));
  const slope = pairs.reduce((s, { t, b }) => s + t * b, 0) / pairs.reduce((s, { t }) => s + t * t, 0);
  const k = (((slope - 1) * 2 ** bound) / (1 - shares.length ** (1 - slope))) ** (1 / slope);
  return normalised(byProbability(shares).slice(0, Math.max(1, Math.floor(k))));
}
