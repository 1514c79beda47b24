import { tokenLogprob } from '../../origin/sampling/logprobs.ts';
import { Sampler } from '../../origin/sampling/sampler.ts';
import { isLargeVocabulary, SimdKernel } from '../../origin/sampling/kernel/simd-kernel.ts';
import { TokenHistory } from '../../origin/sampling/token-history.ts';
import type { SamplerVocabulary } from '../../origin/sampling/vocabulary.ts';
import { SamplerWorkspace } from '../../origin/sampling/workspace.ts';
import { NEUTRAL_SAMPLING } from '../../shared/sampling.ts';
import { SAMPLER_CONFIGURATIONS } from './sampler-configurations.ts';
import { median } from './statistics.ts';

/**
 * Microseconds per token of the sampler by configuration and vocabulary, reduced in blocks where the engine does so. Run
 * by hand: npx node test/bench/sampling.ts
 */

const VOCABULARIES = [8_192, 151_936];
const HISTORY = 1_000;
const ROWS = 8;
const BUDGET_MS = 150;

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
  for (const [name, { logprobs, ...changes }] of Object.entries(SAMPLER_CONFIGURATIONS)) {
    // Measured by themselves below.
    if (logprobs !== undefined) continue;
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
