import { exponential } from './exponential.ts';
import { LOWEST_LOGIT } from './truncation/gather.ts';

/**
 * Temperature that follows the model's certainty (llama.cpp's "temp-ext"): T′ = T_min + (T_max − T_min) · (H / ln K)^e
 * with T_min = max(0, T − range), T_max = T + range, H the entropy of the softmax at temperature 1 in nats and K the
 * number of tokens not forbidden. A single token leaves T as it is.
 */
export function dynamicTemperature(
  logits: Float32Array,
  highest: number,
  temperature: number,
  range: number,
  exponent: number,
): number {
  const size = logits.length;
  let count = 0;
  let total = 0;
  let weighted = 0;
  for (let id = 0; id < size; id++) {
    const logit = logits[id]!;
    if (logit < LOWEST_LOGIT) continue;
    const weight = exponential(logit - highest);
    count++;
    total += weight;
    weighted += weight * (logit - highest);
  }
  if (count < 2) return temperature;
  const entropy = Math.max(0, Math.log(total) - weighted / total);
  const lowest = Math.max(0, temperature - range);
  return lowest + (temperature + range - lowest) * (entropy / Math.log(count)) ** exponent;
}
