import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { tokenLogprob } from '../../../origin/sampling/logprobs.ts';
import { Sampler } from '../../../origin/sampling/sampler.ts';
import { TokenHistory } from '../../../origin/sampling/token-history.ts';
import { SamplerWorkspace } from '../../../origin/sampling/workspace.ts';
import type { TokenBytes } from '../../../origin/tokenizer/token-bytes.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import { mulberry32 } from '../../support/random.ts';
import { median } from './statistics.ts';

/**
 * Measures the sampler in microseconds per token by configuration and vocabulary, on rows shaped like a
 * trained model's. Run on an idle machine: npx node test/tools/bench/sampling.ts
 */

const penalties = { repetitionPenalty: 1.1, frequencyPenalty: 0.2, presencePenalty: 0.1 };

/** The sampler configurations to measure, by the name of the table's row. */
const SAMPLER_CONFIGURATIONS: Readonly<Record<string, Partial<SamplingParameters>>> = {
  greedy: { temperature: 0 },
  'greedy, penalties': { temperature: 0, ...penalties },
  'temperature .8': { temperature: 0.8 },
  'top_k 40': { topK: 40 },
  'top_k 1000': { topK: 1000 },
  'min_p .05': { minP: 0.05 },
  'top_p .9': { topP: 0.9 },
  'top_p .9, T .12': { topP: 0.9, temperature: 0.12 },
  'top_p .999, T 2': { topP: 0.999, temperature: 2 },
  'top_k 40, top_p .95, min_p .05': { topK: 40, topP: 0.95, minP: 0.05 },
  'the same, penalties': { topK: 40, topP: 0.95, minP: 0.05, ...penalties },
  'top_nσ 1': { topNSigma: 1 },
  'typical .9': { typicalP: 0.9 },
  'typical .9, T .12': { typicalP: 0.9, temperature: 0.12 },
  'XTC only': { xtcProbability: 0.5, xtcThreshold: 0.1 },
  'dynamic temperature': { dynatempRange: 0.5 },
  'mirostat 1': { mirostat: 1 },
  'mirostat 2': { mirostat: 2 },
  'DRY, top_k 40': { dryMultiplier: 0.8, topK: 40 },
};

const VOCABULARIES = [8_192, 151_936];
const HISTORY = 1_000;
const BUDGET_MS = 150;
/** As many as there are ENTROPIES. */
const ROWS = 8;

/** Entropies of the rows' distributions in nats; most of a trained model's lie between 2 and 4. */
const ENTROPIES = [0.3, 1, 2, 2, 3, 3, 4, 4];

/** Rows by Zipf's law with noise, the same on every run: logit = −a · ln(rank) + noise, ids at random. */
function trainedRows(size: number, memory: Float32Array): Float32Array[] {
  const uniform = mulberry32(1);
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  return ENTROPIES.map((entropy, index) => {
    const ids = Array.from({ length: size }, (_, id) => ({ id, order: uniform() }));
    const ranks = new Float64Array(size);
    for (const [rank, { id }] of ids.toSorted((a, b) => a.order - b.order).entries()) ranks[id] = rank + 1;
    const noise = Float64Array.from(ranks, () => 0.7 * normal());
    const row = memory.subarray(index * size, (index + 1) * size);
    let [low, high] = [0.8, 8];
    for (let halving = 0; halving < 20; halving++) {
      const slope = (low + high) / 2;
      for (let id = 0; id < size; id++) row[id] = 15 - slope * Math.log(ranks[id]!) + noise[id]!;
      if (entropyOf(row) > entropy) low = slope;
      else high = slope;
    }
    return row;
  });
}

/** In nats. */
function entropyOf(row: Float32Array): number {
  const highest = row.reduce((max, logit) => Math.max(max, logit));
  let [sum, weighted] = [0, 0];
  for (const logit of row) {
    const weight = Math.exp(logit - highest);
    sum += weight;
    weighted += weight * (logit - highest);
  }
  return Math.log(sum) - weighted / sum;
}

function plainVocabulary(vocabularySize: number): TokenBytes {
  const bytes = new Uint8Array(4 * vocabularySize).map((_, i) => (i * 2_654_435_761) >>> 24);
  const offsets = new Uint32Array(vocabularySize + 1).map((_, id) => 4 * id);
  const special = new Uint8Array(vocabularySize);
  return { vocabularySize, bytes, offsets, special };
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
  const kernel = new SimdKernel();
  const rows = trainedRows(size, kernel.allocate(ROWS * size));
  const tokenBytes = plainVocabulary(size);
  const workspace = new SamplerWorkspace(size, kernel);
  const { drySequenceBreakers } = NEUTRAL_SAMPLING;
  const dryBreakers = drySequenceBreakers.map((text) => ({ bytes: Buffer.from(text), tokens: [] }));
  const prompt = Int32Array.from({ length: HISTORY }, (_, i) => (i * i * 31) % Math.min(size, 700));
  const results = new Map<string, number>();
  for (const [name, changes] of Object.entries(SAMPLER_CONFIGURATIONS)) {
    const parameters = { ...NEUTRAL_SAMPLING, dryBreakers, ...changes };
    const sampler = new Sampler(parameters, { seed: 1, prompt: 0, choice: 0 }, tokenBytes, workspace);
    const history = new TokenHistory(prompt, HISTORY + 1);
    results.set(
      name,
      microseconds((round) => sampler.sample(rows[round % ROWS]!, history, round, null, [])),
    );
  }
  for (const topLogprobs of [0, 5]) {
    results.set(
      `logprob, top ${topLogprobs}`,
      microseconds((round) => tokenLogprob(rows[round % ROWS]!, 1, topLogprobs, workspace)),
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
