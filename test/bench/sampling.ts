import { tokenLogprob } from '../../origin/sampling/logprobs.ts';
import { Sampler } from '../../origin/sampling/sampler.ts';
import { isLargeVocabulary, SimdKernel } from '../../origin/sampling/simd/simd-kernel.ts';
import { TokenHistory } from '../../origin/sampling/token-history.ts';
import type { SamplerVocabulary } from '../../origin/sampling/vocabulary.ts';
import { SamplerWorkspace } from '../../origin/sampling/workspace.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../shared/sampling.ts';
import { median } from './statistics.ts';

/**
 * Microseconds per token of the sampler by configuration and vocabulary, reduced in blocks where the engine does so. Run
 * by hand: npx node test/bench/sampling.ts
 */

const VOCABULARIES = [8_192, 151_936];
const HISTORY = 1_000;
const ROWS = 8;
const BUDGET_MS = 150;

const penalties = { repetitionPenalty: 1.1, frequencyPenalty: 0.2, presencePenalty: 0.1 };
const CONFIGURATIONS: Record<string, Partial<SamplingParameters>> = {
  greedy: { temperature: 0 },
  'greedy, penalties': { temperature: 0, ...penalties },
  temperature: { temperature: 0.8 },
  'top_k 40': { topK: 40 },
  'top_k 1000': { topK: 1000 },
  'min_p .05': { minP: 0.05 },
  'top_p .9': { topP: 0.9 },
  'top_p .999, T 2': { topP: 0.999, temperature: 2 },
  'top_k 40, top_p .95, min_p .05': { topK: 40, topP: 0.95, minP: 0.05 },
  'the same, penalties': { topK: 40, topP: 0.95, minP: 0.05, ...penalties },
  'top_nσ 1': { topNSigma: 1 },
  'typical .9': { typicalP: 0.9 },
  'XTC alone': { xtcProbability: 0.5, xtcThreshold: 0.1 },
  'dynamic temperature, min_p .05': { dynatempRange: 0.5, minP: 0.05 },
  'mirostat 1': { mirostat: 1 },
  'mirostat 2': { mirostat: 2 },
  'DRY, top_k 40': { dryMultiplier: 0.8, topK: 40 },
};

/**
 * Bell-shaped logits with a heavy upper tail, as language models give them; the same on every run. They lie where the
 * engine's do.
 */
function modelLikeRows(size: number, memory: Float32Array): Float32Array[] {
  let state = 1;
  const uniform = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  for (let i = 0; i < memory.length; i++) {
    memory[i] = 2.5 * normal() + (uniform() < 0.001 ? 8 * uniform() : 0);
  }
  return Array.from({ length: ROWS }, (_, row) => memory.subarray(row * size, (row + 1) * size));
}

function plainVocabulary(vocabularySize: number): SamplerVocabulary {
  const bytes = new Uint8Array(4 * vocabularySize).map((_, i) => (i * 2_654_435_761) >>> 24);
  const offsets = new Uint32Array(vocabularySize + 1).map((_, id) => 4 * id);
  const special = new Uint8Array(vocabularySize);
  return { tokenBytes: { vocabularySize, bytes, offsets, special }, encode: () => [] };
}

/** Median over batches of the time of one call, in microseconds. */
function microseconds(call: (round: number) => void): number {
  for (let round = 0; round < 200; round++) call(round);
  const times: number[] = [];
  const end = performance.now() + BUDGET_MS;
  for (let round = 0; performance.now() < end; round += ROWS) {
    const start = performance.now();
    for (let i = 0; i < ROWS; i++) call(round + i);
    times.push(((performance.now() - start) * 1000) / ROWS);
  }
  return median(times);
}

function measure(size: number): Map<string, number> {
  const kernel = isLargeVocabulary(size) ? new SimdKernel() : null;
  const rows = modelLikeRows(size, kernel?.allocate(ROWS * size) ?? new Float32Array(ROWS * size));
  const vocabulary = plainVocabulary(size);
  const workspace = new SamplerWorkspace(size, kernel);
  const prompt = Int32Array.from({ length: HISTORY }, (_, i) => (i * i * 31) % Math.min(size, 700));
  const results = new Map<string, number>();
  for (const [name, changes] of Object.entries(CONFIGURATIONS)) {
    const parameters = { ...NEUTRAL_SAMPLING, ...changes };
    const sampler = new Sampler(parameters, { seed: 1, prompt: 0, choice: 0 }, vocabulary, workspace);
    const history = new TokenHistory(prompt, HISTORY + 1);
    results.set(
      name,
      microseconds((round) => sampler.sample(rows[round % ROWS]!, history, round, null, [])),
    );
  }
  for (const top of [0, 5]) {
    results.set(
      `logprob, top ${top}`,
      microseconds((round) => tokenLogprob(rows[round % ROWS]!, 1, top, workspace)),
    );
  }
  return results;
}

const measured = VOCABULARIES.map(measure);
process.stdout.write(
  `${'µs per token'.padEnd(34)}${VOCABULARIES.map((v) => `${v}`.padStart(10)).join('')}\n`,
);
for (const name of measured[0]!.keys()) {
  const cells = measured.map((column) => column.get(name)!.toFixed(1).padStart(10));
  process.stdout.write(`${name.padEnd(34)}${cells.join('')}\n`);
}
