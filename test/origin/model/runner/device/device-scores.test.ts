import { expect, it, onTestFinished, vi } from 'vitest';
import type { ModelRunner } from '../../../../../origin/model/model-runner.ts';
import { encodeModel, encodeNode, encodeTensor } from '../../../../../origin/model/onnx/onnx-encode.ts';
import { ElementType, GraphField } from '../../../../../origin/model/onnx/onnx-graph.ts';
import { arrayTensor } from '../../../../../origin/model/ort/bound-tensors.ts';
import { type OrtApi, openOrtApi } from '../../../../../origin/model/ort/ort-capi.ts';
import { OrtSession } from '../../../../../origin/model/ort/ort-session.ts';
import { scoreFault } from '../../../../../origin/model/runner/device/check-scores.ts';
import { DeviceScores } from '../../../../../origin/model/runner/device/device-scores.ts';
import { writeSyntheticModel } from '../../../../support/synthetic/synthetic-model.ts';
import { changedRunner, deviceRunnerOn } from '../../../../tools/gpu/runners.ts';
import { temporaryDirectory } from '../../synthetic-runner.ts';

const VOCABULARY = 1000;
const TOP = 20;

function copyGraph(): Uint8Array {
  const row = { elementType: ElementType.float32, dimensions: ['n', VOCABULARY] };
  return encodeModel('copy', [
    encodeNode('Identity', ['given'], 'copied'),
    encodeTensor(GraphField.input, { ...row, name: 'given' }),
    encodeTensor(GraphField.output, { ...row, name: 'copied' }),
  ]);
}

/** Scores these rows on the CPU as on a device. */
function scoresOf(rows: readonly Float32Array[], next: readonly number[]) {
  const session = new OrtSession(openOrtApi(), copyGraph(), { threads: 1, directory: '' });
  const memory = session.createDeviceMemory();
  const scores = new DeviceScores({ session, memory, vocabularySize: VOCABULARY });
  onTestFinished(() => {
    scores.dispose();
    memory.dispose();
    session.dispose();
  });
  const given = new Float32Array(new ArrayBuffer(4 * rows.length * VOCABULARY));
  for (const [at, values] of rows.entries()) given.set(values, at * VOCABULARY);
  using binding = session.bound((bound) => {
    bound.input('given', arrayTensor(session.api, given, [rows.length, VOCABULARY]));
    bound.output('copied', scores.logits(rows.length));
  });
  session.run(binding);
  return scores.score(Int32Array.from(next));
}

/** Logits of which many pairs are equal, as of a model in float16. */
const logitsLike = (seed: number): Float32Array =>
  Float32Array.from({ length: VOCABULARY }, (_, id) => (((id + seed) ** 2 * 31) % 1009) / 64);

/** The definition of a score, in doubles. */
function scoreOfRow(logits: Float32Array, id: number, top: number) {
  const ids = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
  const normalizer = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  const logprobOf = (token: number) => logits[token]! - normalizer;
  return { logprob: logprobOf(id), rank: 1 + ids.indexOf(id), top: ids.slice(0, top) };
}

it('scores are those of whole rows: logprob, rank and the most likely tokens, lower ids first if equal', () => {
  const rows = [1, 2, 3, 4, 5].map(logitsLike);
  const next = [0, 999, 17, 500, 30];
  const scored = scoresOf(rows, next);
  for (const [at, logits] of rows.entries()) {
    const right = scoreOfRow(logits, next[at]!, TOP);
    const score = scored.score(at, TOP)!;
    expect(score.rank).toBe(right.rank);
    expect(score.logprob).toBeCloseTo(right.logprob, 5);
    expect(score.top.map(([id]) => id)).toEqual(right.top);
    for (const [listed, logprob] of score.top)
      expect(logprob).toBeCloseTo(scoreOfRow(logits, listed, 0).logprob, 5);
    expect(scored.score(at, 0)!.top).toEqual([]);
    expect(scored.row(at)).toEqual(logits);
  }
});

it('a row whose list could go on with equal logits, or that has no numbers, must be read as a whole', () => {
  const [equal, infinite, none] = [logitsLike(1), logitsLike(2), logitsLike(3)];
  equal.fill(20, 100, 150);
  infinite[7] = Number.POSITIVE_INFINITY;
  none[7] = Number.NaN;
  const scored = scoresOf([equal, infinite, none], [3, 3, 3]);
  expect([0, 1, 2].map((row) => scored.score(row, TOP))).toEqual([null, null, null]);
  expect(scored.score(0, 0)).toMatchObject({ rank: scoreOfRow(equal, 3, 0).rank, top: [] });
  expect(scored.row(0)).toEqual(equal);
});

it('a masked token has the lowest logprob that JSON can write', () => {
  const masked = logitsLike(1);
  masked.fill(Number.NEGATIVE_INFINITY, 10);
  const score = scoresOf([masked], [12])!.score(0, 5)!;
  expect([score.logprob, score.rank, score.top.length]).toEqual([-9999, 13, 5]);
});

it('the start accepts a device that scores as whole rows do, and finds one that does not', async () => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  const ways = { staged: false, scores: true, openCopies: () => null };
  const options = { slots: 4, prefillChunk: 16 };
  const runner = deviceRunnerOn({ provider: 'cpu' }, directory, options, openOrtApi(), { ways });
  onTestFinished(() => runner.dispose());
  const scoring = (changes: Partial<ModelRunner>) =>
    changedRunner(runner, changes) as Parameters<typeof scoreFault>[0];
  const score = runner.score!.bind(runner);
  expect(await scoreFault(scoring({ score }))).toBeNull();
  const changed = (change: (logprob: number, rank: number) => object) =>
    scoring({
      score: async (...parameters) => {
        const rows = await score(...parameters);
        const other = (row: number, top: number) => {
          const right = rows.score(row, top);
          return right && { ...right, ...change(right.logprob, right.rank) };
        };
        return { row: (row) => rows.row(row), score: other };
      },
    });
  expect(await scoreFault(changed((logprob) => ({ logprob: logprob + 0.001 })))).toContain('another score');
  expect(await scoreFault(changed((_, rank) => ({ rank: rank + 1 })))).toContain('another score');
  expect(await scoreFault(changed(() => ({ top: [] })))).toContain('another score');
  const noRows = async () => ({ row: () => new Float32Array(), score: () => null });
  expect(await scoreFault(scoring({ score: noRows }))).toContain('no row');
});

it('scores leave the stream of the decoder to its session', () => {
  const real = openOrtApi();
  const options: string[] = [];
  // They run on the CPU.
  const api: OrtApi = {
    ...real,
    CreateCudaOptions: () => 0n,
    UpdateCudaOptions: (_, keys) => void options.push(...(keys as string[])),
    AppendExecutionProviderCuda: () => undefined,
    ReleaseCudaOptions: () => undefined,
  };
  const stream = { handle: 7n, dispose: vi.fn() };
  const device = { provider: 'cuda', deviceId: 0, memoryBytes: null, graphs: true, stream };
  const decoder = new OrtSession(real, copyGraph(), { threads: 1, directory: '' });
  const memory = decoder.createDeviceMemory();
  onTestFinished(() => {
    memory.dispose();
    decoder.dispose();
  });
  const session = { api, device, turns: undefined } as unknown as OrtSession;
  new DeviceScores({ session, memory, vocabularySize: VOCABULARY }).dispose();
  expect(stream.dispose).not.toHaveBeenCalled();
  expect(options).not.toContain('user_compute_stream');
});
