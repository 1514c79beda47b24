import { exponential } from './exponential.ts';
import type { RowBlocks } from './row-blocks.ts';
import { LOWEST_LOGIT, type Row } from './truncation/gather.ts';

/** Beyond, float32 has no inverse that is a normal number. Whatever the logits, hardly anything is left of their differences. */
const HIGHEST_TEMPERATURE = 2 ** 126;

/**
 * Temperature that follows the model's certainty (llama.cpp's "temp-ext"): T′ = T_min + (T_max − T_min) · (H / ln K)^e
 * with T_min = max(0, T − range), T_max = T + range, H the entropy of the softmax at temperature 1 in nats and K the
 * number of tokens not forbidden. A single token leaves T as it is.
 * @param row at temperature 1, begun by the blocks
 */
export function dynamicTemperature(
  row: Row,
  temperature: number,
  range: number,
  exponent: number,
  blocks: RowBlocks,
): number {
  const { count, entropy } = blocks.weighs ? certaintyByBlocks(row, blocks) : certaintyById(row);
  if (count < 2) return temperature;
  const lowest = Math.max(0, temperature - range);
  // Rounding may take it above 1, which a large exponent would make an infinite temperature of.
  const evenness = Math.min(1, Math.max(0, entropy) / Math.log(count));
  return Math.min(HIGHEST_TEMPERATURE, lowest + (temperature + range - lowest) * evenness ** exponent);
}

interface Certainty {
  readonly count: number;
  /** ln Σ e^x − Σ p x with x = z − max z; rounding may take it below zero. */
  readonly entropy: number;
}

function certaintyByBlocks(row: Row, blocks: RowBlocks): Certainty {
  const count = blocks.deviations(row)[0]!;
  const mean = blocks.meanExponent(row);
  return { count, entropy: Math.log(blocks.weigh(row)) - mean };
}

function certaintyById({ logits, highest }: Row): Certainty {
  let count = 0;
  let total = 0;
  let weighted = 0;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    if (logit < LOWEST_LOGIT) continue;
    const weight = exponential(logit - highest);
    count++;
    total += weight;
    weighted += weight * (logit - highest);
  }
  return { count, entropy: Math.log(total) - weighted / total };
}
