import type { RowBlocks } from '../row-blocks.ts';
import type { Row } from './gather.ts';

/** Every so manieth token is looked at; odd, so that no pattern of the ids is met at one of its places only. */
const STRIDE = 31;
const STEPS_PER_NAT = 64;
/** Tokens below the last step, e^−32 of the most likely one, count as if they were on it. */
const STEPS = 2048;
/** Weights in the middle of each step. */
const WEIGHTS = Float64Array.from({ length: STEPS }, (_, step) => Math.exp(-(step + 0.5) / STEPS_PER_NAT));
/** Standard deviations that estimates stay on the safe side by. */
const DEVIATIONS = 3;

/**
 * A histogram over the weights' logarithms: of the largest logit of each block, where these are known, and of a few of
 * the row's other tokens, always the same ones, each of which stands for `STRIDE`. It tells where a cut ought to lie,
 * nearly; nothing may rest on it but time.
 */
export class RowSample {
  private readonly largest = new Int32Array(STEPS);
  private readonly others = new Int32Array(STEPS);
  private takenOf = -1;
  private takenAt = Number.NaN;

  /** Takes the sample of the row that was begun last, unless it has it. */
  take({ logits, highest, coldness }: Row, { maxima, blockBits, weighs, begun }: RowBlocks): void {
    if (this.takenOf === begun && this.takenAt === coldness) return;
    this.takenOf = begun;
    this.takenAt = coldness;
    const { largest, others } = this;
    const steps = coldness * STEPS_PER_NAT;
    largest.fill(0);
    others.fill(0);
    const known = weighs ? maxima.length : 0;
    for (let block = 0; block < known; block++) largest[stepOf((highest - maxima[block]!) * steps)]! += 1;
    const size = logits.length;
    for (let id = 0; id < size; id += STRIDE) {
      const logit = logits[id]!;
      if (logit !== maxima[id >>> blockBits]) others[stepOf((highest - logit) * steps)]! += 1;
    }
  }

  /** The highest cut below which tokens weigh, in all likelihood, no more than `weight`. */
  cutAbove({ highest, coldness }: Row, weight: number): number {
    return highest - this.reach(0, weight) / coldness;
  }

  /**
   * The least distance from `centre` farther from which tokens weigh, in all likelihood, no more than `weight`; both in
   * nats, the centre below the most likely token. A token more than were seen is reckoned with, so that single heavy ones
   * are not cut off.
   */
  reach(centre: number, weight: number): number {
    const middle = Math.min(Math.floor(centre * STEPS_PER_NAT), STEPS - 1);
    let left = weight;
    let variance = 0;
    let distance = Math.max(middle, STEPS - 1 - middle);
    for (; distance >= 0; distance--) {
      const [above, below] = [middle - distance, middle + distance];
      if (above >= 0 && above < below) {
        left -= this.massOf(above);
        variance += this.varianceOf(above);
      }
      let unseen = 0;
      if (below < STEPS) {
        left -= this.massOf(below);
        variance += this.varianceOf(below);
        unseen = (STRIDE * WEIGHTS[below]!) ** 2;
      }
      if (left < 0 || DEVIATIONS ** 2 * (variance + unseen) > left * left) break;
    }
    return (distance + 1) / STEPS_PER_NAT;
  }

  /** The lowest cut below which tokens weigh, in all likelihood, at least `share` of all. */
  cutBelow({ highest, coldness }: Row, share: number): number {
    // What tokens below the cut weigh beyond their share, and the variance of that.
    let excess = 0;
    let variance = 0;
    for (let step = 0; step < STEPS; step++) {
      excess -= share * this.massOf(step);
      variance += share ** 2 * this.varianceOf(step);
    }
    let step = STEPS - 1;
    for (; step >= 0; step--) {
      excess += this.massOf(step);
      variance += (1 - 2 * share) * this.varianceOf(step);
      if (excess > 0 && DEVIATIONS ** 2 * variance < excess * excess) break;
    }
    return highest - step / (STEPS_PER_NAT * coldness);
  }

  /** The highest cut at and above which, but below `limit`, tokens weigh, in all likelihood, at least `weight`. */
  cutReaching({ highest, coldness }: Row, limit: number, weight: number): number {
    const steps = STEPS_PER_NAT * coldness;
    let missing = weight;
    let variance = 0;
    let step = Math.round((highest - limit) * steps);
    for (; step < STEPS; step++) {
      missing -= this.massOf(step);
      variance += this.varianceOf(step);
      if (missing < 0 && DEVIATIONS ** 2 * variance < missing * missing) break;
    }
    return highest - (step + 1) / steps;
  }

  /** About how many tokens reach a cut. */
  countAbove({ highest, coldness }: Row, cut: number): number {
    const end = Math.min(STEPS, (highest - cut) * coldness * STEPS_PER_NAT);
    let count = 0;
    for (let step = 0; step < end; step++) count += this.largest[step]! + STRIDE * this.others[step]!;
    return count;
  }

  private massOf(step: number): number {
    return (this.largest[step]! + STRIDE * this.others[step]!) * WEIGHTS[step]!;
  }

  private varianceOf(step: number): number {
    return this.others[step]! * (STRIDE * WEIGHTS[step]!) ** 2;
  }
}

function stepOf(exact: number): number {
  return Math.min(exact, STEPS - 1) | 0;
}
