import { type DrawRequest, MAX_DRAWN_TOP_K } from '../model/device-draws.ts';
import type { SparseRow } from '../model/sparse-logits.ts';
import { PROBABILITY_RESOLUTION } from './candidates.ts';
import { dynamicTemperature } from './dynamic-temperature.ts';
import { type DrawParameters, MIN_TEMPERATURE } from './parameters.ts';
import { DRAW_TOKEN, type DrawIdentity, DrawSource } from './rng.ts';
import type { Row } from './row.ts';
import { Mirostat } from './truncation/mirostat.ts';
import { shortlist } from './truncation/shortlist.ts';
import type { Truncation } from './truncation/truncation.ts';
import { TRUNCATIONS } from './truncation/truncations.ts';
import { excludeTopChoices, isXtcOnly } from './truncation/xtc.ts';
import type { SamplerWorkspace } from './workspace.ts';

/**
 * Draws one sequence's tokens from processed rows. The order: temperature → top-nσ → top-k → typical → top-p
 * → min-p → XTC → draw. Mirostat replaces everything from top-nσ to XTC. On any thread, a token is a function
 * of the parameters, the row's bits, the identity, the step and, with Mirostat, the bound.
 */
export class TokenDraw {
  readonly parameters: DrawParameters;
  readonly identity: DrawIdentity;
  readonly #workspace: SamplerWorkspace;
  readonly #draws: DrawSource;
  readonly #truncations: readonly Truncation[];
  readonly #mirostat: Mirostat | null;
  /** Whether XTC is applied to the row, without gathering candidates. */
  readonly #excludesInRow: boolean;
  /** False if the draw is from the whole softmax. */
  readonly #truncates: boolean;

  constructor(parameters: DrawParameters, identity: DrawIdentity, workspace: SamplerWorkspace) {
    const { mirostat, topK, topNSigma } = parameters;
    this.parameters = parameters;
    this.identity = identity;
    this.#workspace = workspace;
    this.#draws = new DrawSource(identity);
    this.#truncations = TRUNCATIONS.map((create) => create(parameters, this.#draws)).filter(
      (truncation) => truncation !== null,
    );
    this.#excludesInRow = isXtcOnly(parameters) && workspace.row.sumsInFloat32;
    this.#truncates = !this.#excludesInRow && (this.#truncations.length > 0 || topK > 0 || topNSigma > 0);
    this.#mirostat = mirostat === 0 ? null : new Mirostat(mirostat, parameters);
  }

  /** Mirostat's bound, which each draw corrects; the only state. Zero without Mirostat. */
  get bound(): number {
    return this.#mirostat?.bound ?? 0;
  }

  set bound(bound: number) {
    if (this.#mirostat !== null) this.#mirostat.bound = bound;
  }

  /** What a sparse row must be weighed at: 1 / temperature. Null if the draw needs whole rows. */
  get coldness(): number | null {
    const { temperature, typicalP, topNSigma, dynatempRange } = this.parameters;
    if (temperature < MIN_TEMPERATURE) return 1;
    const readsAll = typicalP < 1 || topNSigma > 0 || dynatempRange > 0 || this.#mirostat !== null;
    return readsAll || this.#excludesInRow ? null : 1 / temperature;
  }

  /** Returns what a device needs to draw the token of a step; null if it has no such draws. */
  requestAt(step: number): Omit<DrawRequest, 'edits' | 'mask' | 'listed'> | null {
    const { temperature, topK, topP, minP, minKeep } = this.parameters;
    const isGreedy = temperature < MIN_TEMPERATURE;
    if (!isGreedy && !this.#suitsDevice) return null;
    return {
      isGreedy,
      coldness: isGreedy ? 1 : 1 / temperature,
      uniform: isGreedy ? 0 : this.#draws.uniform(step, DRAW_TOKEN),
      topK,
      share: topP < 1 ? topP - PROBABILITY_RESOLUTION : 1,
      ratio: minP * (1 - PROBABILITY_RESOLUTION),
      minKeep,
    };
  }

  get #suitsDevice(): boolean {
    const { topK, minKeep, typicalP, topNSigma, dynatempRange, xtcProbability } = this.parameters;
    const isListed = topK > 0 && Math.max(topK, minKeep) <= MAX_DRAWN_TOP_K;
    if (!isListed && (topK > 0 || minKeep > 1)) return false;
    return typicalP >= 1 && topNSigma <= 0 && dynatempRange === 0 && xtcProbability <= 0 && !this.#mirostat;
  }

  /**
   * Returns a token's id.
   * @param logits one processed row, float32 per token id; not modified unless it is the workspace's `edited`
   * @param step how many tokens this sequence has generated before; keys the draw
   * @param sparse what is known of a row of which not all logits are here
   * @throws InvalidLogitsError if the row holds NaN or +∞, NoCandidatesError if all tokens are forbidden,
   *   AbsentLogits
   */
  from(logits: Float32Array, step: number, sparse: SparseRow | null = null): number {
    const workspace = this.#workspace;
    const { row, candidates } = workspace;
    if (logits.length !== workspace.vocabularySize) {
      throw new RangeError(`row of ${logits.length} logits, vocabulary of ${workspace.vocabularySize}`);
    }
    const best = row.begin(logits, sparse);
    candidates.set(0, 0);
    const temperature = this.#temperature(row);
    if (temperature < MIN_TEMPERATURE) return best;
    row.coldness = 1 / temperature;
    const uniform = this.#draws.uniform(step, DRAW_TOKEN);
    if (this.#mirostat) return this.#mirostat.draw(uniform, workspace);
    if (this.#excludesInRow) excludeTopChoices(this.parameters, this.#draws, step, workspace);
    if (!this.#truncates) return row.draw(uniform);
    shortlist(this.parameters, workspace);
    for (const truncation of this.#truncations) truncation.apply(workspace, step);
    return candidates.ids[candidates.draw(uniform)]!;
  }

  #temperature(row: Row): number {
    const { temperature, dynatempRange, dynatempExponent } = this.parameters;
    if (temperature < MIN_TEMPERATURE || dynatempRange === 0) return temperature;
    return dynamicTemperature(row, temperature, dynatempRange, dynatempExponent);
  }
}
