import type { NormDesign, ProjectionDesign, Weight } from './weight-design.ts';

/** Parts of a decoder as data: MLPs, experts and their routers. */

/** f in f(gate) · up, or f(up) without a gate. */
export type Activation =
  | 'silu'
  | 'gelu'
  /** 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))) */
  | 'gelu-tanh'
  /** x · sigmoid(1.702 x) */
  | 'gelu-sigmoid'
  | 'relu'
  /** max(x, 0)² */
  | 'relu-squared'
  | XieluActivation;

/**
 * Apertus: αp x² + β x for x > 0, else (exp(min(x, ε)) − 1 − x) αn + β x, with αp, αn as the model uses them.
 */
export interface XieluActivation {
  readonly kind: 'xielu';
  /** Scalars before their softplus: αp = softplus(alphaP), αn = β + softplus(alphaN). */
  readonly alphaP: Weight;
  readonly alphaN: Weight;
  readonly beta: number;
  readonly epsilon: number;
}

export interface MlpDesign {
  readonly kind: 'mlp';
  readonly width: number;
  /** Null = y = down(f(up(x))). */
  readonly gate: ProjectionDesign | null;
  readonly up: ProjectionDesign;
  readonly down: ProjectionDesign;
  readonly activation: Activation;
  /**
   * gpt-oss: gate ≤ limit, |up| ≤ limit, y = down((up + 1) · gate · sigmoid(alpha · gate)); `activation` is
   * not used. Absent = f(gate) · up.
   */
  readonly clippedSwiglu?: { readonly alpha: number; readonly limit: number };
  /**
   * Gemma 3n: max(0, gate − mean − gateThreshold · deviation) in place of the gate, with the mean and the
   * standard deviation of its values. Absent = the gate.
   */
  readonly gateThreshold?: number;
  /** Falcon H1: y = output · down(f(gate · gate(x)) · up(x)). Absent = both are 1. */
  readonly multipliers?: { readonly gate: number; readonly output: number };
}

/** Chooses the experts of a token and weighs their results. */
export interface RouterDesign {
  /** Of what the projection reads, and its factor (Gemma 4); null = none. */
  readonly input: { readonly norm: NormDesign; readonly factor: number } | null;
  /** Weight [experts, hidden]. */
  readonly projection: ProjectionDesign;
  /** Experts that a token uses. */
  readonly active: number;
  /** Makes the scores of experts from the projection's logits. */
  readonly scores: 'softmax' | 'sigmoid' | SparseMixer;
  /** [experts]: added to the scores to choose experts, not to weigh them; null = nothing. */
  readonly correction: Weight | null;
  /**
   * Neighbouring experts in `count` groups: experts are chosen from the `chosen` groups with the largest sums
   * of their `best` scores; null = from all.
   */
  readonly groups: { readonly count: number; readonly chosen: number; readonly best: number } | null;
  /** Whether the scores of the chosen experts are divided by their sum, which is at least `smallestSum`. */
  readonly normalized: boolean;
  readonly smallestSum: number;
  /** Added to that sum. */
  readonly epsilon: number;
  /** Factor of the scores of the chosen experts; above 0, usually 1. */
  readonly scale: number;
  /** Whether the scores multiply what the experts read (Llama 4), in place of their results. */
  readonly scalesInput: boolean;
  /** [experts]: factors of each expert's score; null = 1. */
  readonly expertScales: Weight | null;
}

/**
 * Phi 3.5 MoE: each of two experts is the best of those left. Its score is its softmax among those logits s
 * of them for which (best − s) / max(|s|, best) is at most `reach`.
 */
export interface SparseMixer {
  readonly kind: 'sparse-mixer';
  readonly reach: number;
}

export interface ExpertsDesign {
  readonly kind: 'experts';
  readonly experts: readonly MlpDesign[];
  readonly router: RouterDesign;
  /** An MLP that every token uses; `gate` [1, hidden]: its result is multiplied by sigmoid(gate · x). */
  readonly shared: { readonly mlp: MlpDesign; readonly gate: ProjectionDesign | null } | null;
}

/**
 * An MLP beside experts (Gemma 4): mlpOutputNorm(mlp(norm(x))) + expertsOutputNorm(experts(expertsNorm(x))).
 * The router reads x, the residual stream.
 */
export interface MlpAndExpertsDesign {
  readonly kind: 'mlp-and-experts';
  readonly mlp: MlpDesign;
  readonly mlpOutputNorm: NormDesign;
  readonly experts: ExpertsDesign;
  readonly expertsNorm: NormDesign;
  readonly expertsOutputNorm: NormDesign;
}
