import type { SamplingParameters } from '../../shared/sampling.ts';
import { dynamicTemperature } from './dynamic-temperature.ts';
import { DRAW_TOKEN, type DrawIdentity, DrawSource } from './rng.ts';
import type { Row } from './truncation/gather.ts';
import { Mirostat } from './truncation/mirostat.ts';
import { TRUNCATIONS } from './truncation/registry.ts';
import { drawFromRow } from './truncation/row-sums.ts';
import { shortlist } from './truncation/shortlist.ts';
import type { Truncation } from './truncation/truncation.ts';
import { drawFromWideNucleus, isNucleusAlone } from './truncation/wide-nucleus.ts';
import { xtcActs } from './truncation/xtc.ts';
import { drawPastTopChoices, isXtcAlone } from './truncation/xtc-alone.ts';
import type { SamplerWorkspace } from './workspace.ts';

/** What says how a token is drawn from a row once it is processed: numbers, all of them. */
export const DRAW_PARAMETERS = [
  'temperature',
  'dynatempRange',
  'dynatempExponent',
  'topK',
  'topP',
  'minP',
  'typicalP',
  'topNSigma',
  'xtcProbability',
  'xtcThreshold',
  'mirostat',
  'mirostatTau',
  'mirostatEta',
  'minKeep',
] as const satisfies readonly (keyof SamplingParameters)[];

export type DrawParameters = Pick<SamplingParameters, (typeof DRAW_PARAMETERS)[number]>;

/** Temperatures below this are greedy. */
const GREEDY_BELOW = 1e-5;

/** True where nothing is drawn: all choices of one prompt are the same. */
export function isGreedy({ temperature }: DrawParameters): boolean {
  return temperature < GREEDY_BELOW;
}

/**
 * One sequence's tokens from processed rows. The order: temperature → top-nσ → top-k → typical → top-p → min-p → XTC →
 * draw; Mirostat takes the place of everything from top-nσ to XTC. A token is a function of the parameters, the row's
 * bits, the identity, the step and, with Mirostat, the bound, on whichever thread it is drawn.
 */
export class TokenDraw {
  readonly parameters: DrawParameters;
  readonly identity: DrawIdentity;
  private readonly workspace: SamplerWorkspace;
  private readonly draws: DrawSource;
  private readonly truncations: readonly Truncation[];
  private readonly mirostat: Mirostat | null;
  /** False where the draw is from the whole softmax. */
  private readonly truncates: boolean;
  /** The only truncation, where it need not gather what it leaves of a large vocabulary. */
  private readonly alone: 'nucleus' | 'xtc' | null;
  private readonly row: Row = { logits: new Float32Array(0), highest: 0, coldness: 1 };

  constructor(parameters: DrawParameters, identity: DrawIdentity, workspace: SamplerWorkspace) {
    const { mirostat, topK, topNSigma } = parameters;
    this.parameters = parameters;
    this.identity = identity;
    this.workspace = workspace;
    this.draws = new DrawSource(identity);
    this.truncations = TRUNCATIONS.map((create) => create(parameters, this.draws)).filter(
      (truncation) => truncation !== null,
    );
    this.truncates = this.truncations.length > 0 || topK > 0 || topNSigma > 0;
    this.alone = isNucleusAlone(parameters) ? 'nucleus' : isXtcAlone(parameters) ? 'xtc' : null;
    this.mirostat = mirostat === 0 ? null : new Mirostat(mirostat, parameters);
  }

  /** Mirostat's, which each draw corrects: all the state there is. Zero without it. */
  get bound(): number {
    return this.mirostat?.bound ?? 0;
  }

  set bound(bound: number) {
    if (this.mirostat !== null) this.mirostat.bound = bound;
  }

  /**
   * A token's id.
   * @param logits one processed row, float32 per token id; not modified.
   * @param step how many tokens this sequence has generated before; keys the draw.
   * @throws InvalidLogitsError when the row holds NaN or +∞, NoCandidatesError when nothing is left to sample.
   */
  from(logits: Float32Array, step: number): number {
    const row = this.row;
    const workspace = this.workspace;
    if (logits.length !== workspace.vocabularySize) {
      throw new RangeError(`row of ${logits.length} logits, vocabulary of ${workspace.vocabularySize}`);
    }
    const best = workspace.blocks.argmax(logits);
    row.logits = logits;
    row.highest = logits[best]!;
    const temperature = this.temperature(row);
    if (temperature < GREEDY_BELOW) return best;
    row.coldness = 1 / temperature;
    const uniform = this.draws.uniform(step, DRAW_TOKEN);
    if (this.mirostat) return this.mirostat.draw(row, uniform, workspace);
    if (!this.truncates) return drawFromRow(row, uniform, workspace);
    const drawn = workspace.blocks.weighs ? this.drawUngathered(row, uniform, step) : -1;
    if (drawn >= 0) return drawn;
    shortlist(row, this.parameters, workspace);
    for (const truncation of this.truncations) truncation.apply(workspace, step);
    const { candidates } = workspace;
    return candidates.ids[candidates.draw(uniform)]!;
  }

  /** −1 where what is left has to be gathered. */
  private drawUngathered(row: Row, uniform: number, step: number): number {
    const { parameters, draws, workspace } = this;
    const alone = this.alone;
    if (alone === null) return -1;
    if (alone === 'nucleus') return drawFromWideNucleus(row, parameters, uniform, workspace);
    return xtcActs(parameters, draws, step)
      ? drawPastTopChoices(row, parameters, uniform, workspace)
      : drawFromRow(row, uniform, workspace);
  }

  private temperature(row: Row): number {
    const { temperature, dynatempRange, dynatempExponent } = this.parameters;
    if (temperature < GREEDY_BELOW || dynatempRange === 0) return temperature;
    row.coldness = 1;
    return dynamicTemperature(row, temperature, dynatempRange, dynatempExponent, this.workspace.blocks);
  }
}
