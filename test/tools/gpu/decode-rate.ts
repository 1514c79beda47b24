import { prefill } from '../../../origin/hub/check/greedy.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { median } from '../bench/statistics.ts';

export interface DecodeRate {
  readonly batch: number;
  readonly tokensPerSecond: number;
  /** Upper limit by bandwidth: each step reads the weights once and every row's KV cache. */
  readonly limit: number;
}

export interface RateOptions {
  readonly batches: readonly number[];
  /** Tokens already in every row. */
  readonly context: number;
  readonly steps: number;
  readonly weightBytes: number;
  /** KV cache of one position of one row. */
  readonly positionBytes: number;
  /** Bytes per second. */
  readonly bandwidth: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

const WARM_STEPS = 5;

/**
 * Measures full decode steps. Logits stay on the device if the runner can leave them there. Returns medians
 * over the steps.
 */
export async function decodeRates(runner: ModelRunner, options: RateOptions): Promise<DecodeRate[]> {
  const { batches, context, steps, weightBytes, positionBytes, bandwidth, now } = options;
  const { vocabularySize, slots } = runner.shape;
  const prompt = Array.from({ length: context }, (_, at) => (at * 31 + 7) % vocabularySize);
  await prefill(runner, 0, prompt);
  for (let slot = 1; slot < slots; slot++) runner.copy(0, slot, context);
  const kept = runner.states?.keep(0, context);
  const rates: DecodeRate[] = [];
  for (const batch of batches) {
    const times: number[] = [];
    const [tokens, positions] = [new Int32Array(batch), new Int32Array(batch)];
    for (let slot = 0; slot < batch; slot++) kept?.restore(slot, context);
    const coldness = runner.sparse ? Array<number>(batch).fill(1) : undefined;
    for (let step = 0; step < WARM_STEPS + steps; step++) {
      tokens.fill((step * 13 + 5) % vocabularySize);
      positions.fill(context + step);
      const start = now();
      await runner.decode({ firstSlot: 0, rows: batch, tokens, positions, coldness });
      times.push(now() - start);
    }
    const bytes = weightBytes + batch * (context + steps / 2) * positionBytes;
    const stepMs = median(times.slice(WARM_STEPS));
    rates.push({ batch, tokensPerSecond: (1000 * batch) / stepMs, limit: (batch * bandwidth) / bytes });
  }
  return rates;
}
