import type { Row } from './row.ts';

/** float32 has no normal inverse of a higher temperature. Any two logits have nearly equal weights there. */
const MAX_TEMPERATURE = 2 ** 126;

/**
 * Returns a temperature that rises with the entropy (llama.cpp's "temp-ext"): T′ = T_min + (T_max − T_min) ·
 * (H / ln K)^e with T_min = max(0, T − range) and T_max = T + range. H is the entropy of the softmax at
 * temperature 1 in nats. K is the number of tokens not forbidden; if it is 1, the result is T.
 * @param row at temperature 1
 */
export function dynamicTemperature(row: Row, temperature: number, range: number, exponent: number): number {
  const { count } = row.deviations();
  if (count < 2) return temperature;
  const entropy = Math.log(row.weigh()) - row.meanLogWeight();
  const min = Math.max(0, temperature - range);
  // Rounding may raise it above 1, which a large exponent would turn into an infinite temperature.
  const evenness = Math.min(1, Math.max(0, entropy) / Math.log(count));
  return Math.min(MAX_TEMPERATURE, min + (temperature + range - min) * evenness ** exponent);
}
