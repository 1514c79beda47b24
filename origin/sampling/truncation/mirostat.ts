import type { DrawParameters } from '../parameters.ts';
import { LOWEST_LOGIT } from '../row.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { gatherAbove, gatherTop } from './gather.ts';

/** The most likely tokens from which version 1 estimates the exponent of Zipf's law. */
const ZIPF_SAMPLE = 100;

/**
 * Mirostat (Basu et al., "Mirostat: A Neural Text Decoding Algorithm that Directly Controls Perplexity",
 * 2020), as in llama.cpp. Keeps the surprise of the drawn tokens near τ bits: truncates the distribution at a
 * bound μ, which each draw corrects: μ₀ = 2τ, S = −log₂ p of the drawn token among those kept, μ ← μ − η (S −
 * τ). One object per sequence: μ is its state.
 */
export class Mirostat {
  /** The bound on surprise, in bits. */
  bound: number;
  readonly #version: 1 | 2;
  readonly #target: number;
  readonly #rate: number;

  constructor(version: 1 | 2, parameters: DrawParameters) {
    this.#version = version;
    this.#target = parameters.mirostatTau;
    this.#rate = parameters.mirostatEta;
    this.bound = 2 * this.#target;
  }

  /**
   * Makes the tokens below the bound the workspace's candidates, draws one, corrects the bound and returns
   * the id.
   */
  draw(uniform: number, workspace: SamplerWorkspace): number {
    if (this.#version === 1) gatherByRank(this.bound, workspace);
    else gatherBySurprise(this.bound, workspace);
    const { candidates } = workspace;
    const drawn = candidates.draw(uniform);
    this.observe(-Math.log2(candidates.weights[drawn]! / candidates.mass));
    return candidates.ids[drawn]!;
  }

  /** Corrects the bound after a token of this surprise, in bits. */
  observe(surprise: number): void {
    this.bound -= this.#rate * (surprise - this.#target);
  }
}

/** Version 2: keeps −log₂ p ≤ μ, and the most likely token in any case. */
function gatherBySurprise(bound: number, workspace: SamplerWorkspace): void {
  const { row } = workspace;
  const cut = row.highest + (Math.log(row.weigh()) - bound * Math.LN2) / row.coldness;
  if (cut > row.highest) gatherTop(1, LOWEST_LOGIT, workspace);
  else gatherAbove(cut, workspace);
}

/** Version 1: keeps the k most likely tokens, k estimated from μ and the slope of the most likely ones. */
function gatherByRank(bound: number, workspace: SamplerWorkspace): void {
  const { count: vocabulary } = workspace.row.deviations();
  gatherTop(ZIPF_SAMPLE, LOWEST_LOGIT, workspace);
  const { candidates, keys } = workspace;
  keys.set(candidates.weights.subarray(0, candidates.count));
  const sorted = keys.subarray(0, candidates.count).sort().reverse();
  const exponent = zipfExponent(sorted);
  gatherTop(rankBound(exponent, bound, vocabulary), LOWEST_LOGIT, workspace);
}

/**
 * ŝ = Σ t b / Σ t² with t_i = ln((i+2)/(i+1)) and b_i = ln(p_i / p_{i+1}); NaN if there is no pair.
 * @param weights proportional to probabilities, largest first
 */
export function zipfExponent(weights: Float64Array): number {
  let products = 0;
  let squares = 0;
  for (let i = 0; i + 1 < weights.length && weights[i + 1]! > 0; i++) {
    const t = Math.log((i + 2) / (i + 1));
    products += t * Math.log(weights[i]! / weights[i + 1]!);
    squares += t * t;
  }
  return products / squares;
}

/**
 * The number of tokens to keep: k = (ε 2^μ / (1 − V^−ε))^(1/ŝ) with ε = ŝ − 1, at least one; near ε = 0 its
 * limit (2^μ / ln V)^(1/ŝ). All V without a usable estimate.
 */
export function rankBound(exponent: number, bound: number, vocabulary: number): number {
  const epsilon = exponent - 1;
  const base =
    Math.abs(epsilon) < 1e-9
      ? 2 ** bound / Math.log(vocabulary)
      : (epsilon * 2 ** bound) / (1 - vocabulary ** -epsilon);
  const k = base ** (1 / exponent);
  return Number.isFinite(k) ? Math.min(vocabulary, Math.max(1, Math.floor(k))) : vocabulary;
}
