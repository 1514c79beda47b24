import type { DrawParameters } from '../token-draw.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { gatherAbove, gatherTop, LOWEST_LOGIT, type Row } from './gather.ts';
import { sumWeights } from './row-sums.ts';

/** Likeliest tokens from which version 1 estimates the exponent of Zipf's law. */
const ESTIMATED = 100;

/**
 * Mirostat (Basu et al., "Mirostat: A Neural Text Decoding Algorithm that Directly Controls Perplexity", 2020), in
 * llama.cpp's reading. It keeps the surprise of the drawn tokens near τ bits by cutting the distribution at a bound μ
 * that each draw corrects: μ₀ = 2τ, S = −log₂ p of the drawn token among those kept, μ ← μ − η (S − τ).
 * One object per sequence: μ is its state.
 */
export class Mirostat {
  /** The bound on surprise, in bits. */
  bound: number;
  private readonly version: 1 | 2;
  private readonly target: number;
  private readonly rate: number;

  constructor(version: 1 | 2, parameters: DrawParameters) {
    this.version = version;
    this.target = parameters.mirostatTau;
    this.rate = parameters.mirostatEta;
    this.bound = 2 * this.target;
  }

  /** Leaves the tokens below the bound in the workspace's candidates, draws one, corrects the bound; its id. */
  draw(row: Row, uniform: number, workspace: SamplerWorkspace): number {
    if (this.version === 1) gatherByRank(row, this.bound, workspace);
    else gatherBySurprise(row, this.bound, workspace);
    const { candidates } = workspace;
    const drawn = candidates.draw(uniform);
    this.observe(-Math.log2(candidates.weights[drawn]! / candidates.mass));
    return candidates.ids[drawn]!;
  }

  /** Corrects the bound after a token of this surprise, in bits. */
  observe(surprise: number): void {
    this.bound -= this.rate * (surprise - this.target);
  }
}

/** Version 2: keeps −log₂ p ≤ μ, and the most likely token in any case. */
function gatherBySurprise(row: Row, bound: number, workspace: SamplerWorkspace): void {
  const temperature = 1 / row.coldness;
  const cut =
    row.highest + temperature * (Math.log(sumWeights(row, LOWEST_LOGIT, workspace)) - bound * Math.LN2);
  if (cut > row.highest) gatherTop(row, 1, LOWEST_LOGIT, workspace);
  else gatherAbove(row, cut, workspace);
}

/** Version 1: keeps the k likeliest tokens, k estimated from μ and the slope of the likeliest ones. */
function gatherByRank(row: Row, bound: number, workspace: SamplerWorkspace): void {
  const vocabulary = workspace.blocks.deviations(row)[0]!;
  gatherTop(row, ESTIMATED, LOWEST_LOGIT, workspace);
  const { candidates, keys: sorted } = workspace;
  for (let i = 0; i < candidates.count; i++) {
    const weight = candidates.weights[i]!;
    let rank = i;
    for (; rank > 0 && sorted[rank - 1]! < weight; rank--) sorted[rank] = sorted[rank - 1]!;
    sorted[rank] = weight;
  }
  const exponent = zipfExponent(sorted, candidates.count);
  gatherTop(row, rankBound(exponent, bound, vocabulary), LOWEST_LOGIT, workspace);
}

/**
 * ŝ = Σ t b / Σ t² with t_i = ln((i+2)/(i+1)) and b_i = ln(p_i / p_{i+1}); NaN where there is no pair to learn from.
 * @param weights proportional to probabilities, largest first; the first `count` are read.
 */
export function zipfExponent(weights: Float64Array, count: number): number {
  let products = 0;
  let squares = 0;
  for (let i = 0; i + 1 < count && weights[i + 1]! > 0; i++) {
    const t = Math.log((i + 2) / (i + 1));
    products += t * Math.log(weights[i]! / weights[i + 1]!);
    squares += t * t;
  }
  return products / squares;
}

/**
 * Number of tokens to keep: k = (ε 2^μ / (1 − V^−ε))^(1/ŝ) with ε = ŝ − 1, at least one; near ε = 0 its limit
 * (2^μ / ln V)^(1/ŝ). Without a usable estimate all V.
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
