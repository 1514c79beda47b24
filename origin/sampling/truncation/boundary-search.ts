import type { Candidates } from './candidates.ts';
import { medianOfThree } from './kth-largest.ts';

const STEPS_LOG2 = 10;
const STEPS = 2 ** STEPS_LOG2;
/** Keys are told apart down to 2^−32 of the largest; smaller ones share the last step. */
const WIDEST_RANGE = (32 << 20) - 1;
/** Index of a float64's high word, by the byte order of the machine. */
const HIGH_WORD = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 1 : 0;

/**
 * Finds where a prefix of candidates ordered by key ends, without sorting them: a histogram over the keys' logarithms
 * (read off the float's exponent and first mantissa bits), as fine as their range allows, finds the step that holds the
 * boundary, a quickselect that weighs its parts finds the key within it. Linear time however much is kept; equal keys are
 * one part, so that flat distributions cost no more. One object serves all; the results stand until the next run.
 */
export class BoundarySearch {
  /** The largest key such that the candidates with it and above reach the target; −∞ when nothing does. */
  boundary = 0;
  /** How many candidates have larger keys, and their weight together. */
  betterCount = 0;
  betterWeight = 0;
  /** The largest key's high word, and the bits of a difference from it that do not change the step. */
  private top = 0;
  private shift = 0;
  private readonly stepWeights = new Float64Array(STEPS);
  private readonly stepCounts = new Int32Array(STEPS);
  private readonly candidates: Candidates;
  private readonly weightWords: Uint32Array;
  private readonly keyWords: Uint32Array;
  private readonly order: Int32Array;

  /**
   * @param keys keys other than the candidates' own weights, to be filled in before a run.
   * @param order working memory, as long as the candidates' capacity.
   */
  constructor(candidates: Candidates, keys: Float64Array, order: Int32Array) {
    this.candidates = candidates;
    this.weightWords = new Uint32Array(candidates.weights.buffer);
    this.keyWords = new Uint32Array(keys.buffer);
    this.order = order;
  }

  /**
   * Reached are a summed weight of `target` and a number of `atLeast`.
   * @param keys one per candidate, in 0..1: the candidates' weights or the array of the constructor.
   */
  run(keys: Float64Array, target: number, atLeast: number): void {
    const words = keys === this.candidates.weights ? this.weightWords : this.keyWords;
    this.layOut(words);
    const step = this.boundaryStep(words, target, atLeast);
    const order = this.order;
    const top = this.top;
    const shift = this.shift;
    const { count } = this.candidates;
    let members = 0;
    for (let i = 0; i < count; i++) {
      if (stepOf(top - words[2 * i + HIGH_WORD]!, shift) === step) order[members++] = i;
    }
    this.select(keys, members, target, atLeast);
  }

  /** Spreads the steps over the range of the keys. */
  private layOut(words: Uint32Array): void {
    let [top, bottom] = [0, 0x7fffffff];
    for (let i = 0; i < this.candidates.count; i++) {
      const word = words[2 * i + HIGH_WORD]!;
      if (word > top) top = word;
      if (word < bottom) bottom = word;
    }
    this.top = top;
    this.shift = Math.max(0, 32 - Math.clz32(Math.min(top - bottom, WIDEST_RANGE)) - STEPS_LOG2);
  }

  /** The step in which the target is reached, STEPS (which has no members) when it is not; what the steps before hold counts as better. */
  private boundaryStep(words: Uint32Array, target: number, atLeast: number): number {
    const { count, weights } = this.candidates;
    const stepWeights = this.stepWeights;
    const stepCounts = this.stepCounts;
    const top = this.top;
    const shift = this.shift;
    stepWeights.fill(0);
    stepCounts.fill(0);
    for (let i = 0; i < count; i++) {
      const step = stepOf(top - words[2 * i + HIGH_WORD]!, shift);
      stepWeights[step]! += weights[i]!;
      stepCounts[step]! += 1;
    }
    this.betterCount = 0;
    this.betterWeight = 0;
    for (let step = 0; step < STEPS; step++) {
      const number = this.betterCount + stepCounts[step]!;
      const weight = this.betterWeight + stepWeights[step]!;
      if (number >= atLeast && weight >= target) return step;
      this.betterCount = number;
      this.betterWeight = weight;
    }
    return STEPS;
  }

  /** Narrows the boundary down among the candidates listed in order[0 … members). */
  private select(keys: Float64Array, members: number, target: number, atLeast: number): void {
    const order = this.order;
    const { weights } = this.candidates;
    const before = this.betterCount;
    let from = 0;
    let to = members;
    this.boundary = Number.NEGATIVE_INFINITY;
    while (from < to) {
      const pivot = medianOfThree(
        keys[order[from]!]!,
        keys[order[(from + to) >>> 1]!]!,
        keys[order[to - 1]!]!,
      );
      // Three parts: [from, above) has larger keys, [above, i) equal ones, [below, to) smaller ones.
      let above = from;
      let below = to;
      let weightAbove = 0;
      let weightEqual = 0;
      for (let i = from; i < below; ) {
        const candidate = order[i]!;
        const key = keys[candidate]!;
        if (key > pivot) {
          weightAbove += weights[candidate]!;
          order[i++] = order[above]!;
          order[above++] = candidate;
        } else if (key < pivot) {
          order[i] = order[--below]!;
          order[below] = candidate;
        } else {
          weightEqual += weights[candidate]!;
          i++;
        }
      }
      if (before + above >= atLeast && this.betterWeight + weightAbove >= target) {
        to = above;
        continue;
      }
      this.betterWeight += weightAbove;
      this.betterCount = before + above;
      this.boundary = pivot;
      if (before + below >= atLeast && this.betterWeight + weightEqual >= target) return;
      this.betterWeight += weightEqual;
      this.betterCount = before + below;
      from = below;
    }
  }
}

function stepOf(below: number, shift: number): number {
  return Math.min(STEPS - 1, below >> shift);
}
