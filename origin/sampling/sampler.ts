import type { SamplingParameters } from '../../shared/sampling.ts';
import { dynamicTemperature } from './dynamic-temperature.ts';
import { bitSetOf, copyMasked } from './logits/masked-copy.ts';
import type { LogitProcessor } from './logits/processor.ts';
import { LOGIT_PROCESSORS } from './logits/registry.ts';
import { DRAW_TOKEN, type DrawIdentity, DrawSource } from './rng.ts';
import type { TokenHistory } from './token-history.ts';
import type { Row } from './truncation/gather.ts';
import { Mirostat } from './truncation/mirostat.ts';
import { TRUNCATIONS } from './truncation/registry.ts';
import { drawFromRow } from './truncation/row-sums.ts';
import { shortlist } from './truncation/shortlist.ts';
import type { Truncation } from './truncation/truncation.ts';
import { drawFromWideNucleus, isNucleusAlone } from './truncation/wide-nucleus.ts';
import type { SamplerVocabulary } from './vocabulary.ts';
import type { SamplerWorkspace } from './workspace.ts';

/** Temperatures below this are greedy. */
const GREEDY_BELOW = 1e-5;

/** True where nothing is drawn: all choices of one prompt are the same. */
export function isGreedy({ temperature }: SamplingParameters): boolean {
  return temperature < GREEDY_BELOW;
}

/**
 * Turns one sequence's logits into tokens. The order: masks and bans → bad words → logit bias → repetition →
 * frequency and presence → DRY → temperature → top-nσ → top-k → typical → top-p → min-p → XTC → draw; Mirostat takes
 * the place of everything from top-nσ to XTC. A token is a function of the parameters, the logits' bits, the history,
 * the identity and the step (and, with Mirostat, of the surprise of this sequence's earlier tokens).
 */
export class Sampler {
  private readonly parameters: SamplingParameters;
  private readonly workspace: SamplerWorkspace;
  private readonly draws: DrawSource;
  private readonly allowed: Uint32Array | null;
  private readonly processors: readonly LogitProcessor[];
  private readonly truncations: readonly Truncation[];
  private readonly mirostat: Mirostat | null;
  /** False where the draw is from the whole softmax. */
  private readonly truncates: boolean;
  private readonly isNucleusAlone: boolean;
  /** Whether nothing but a constraint would change a row. */
  readonly takesRaw: boolean;
  /** Whether the last token came from a wide nucleus, as the next one then does most likely. */
  private drewWide = false;
  /** Whether the last row was sampled as it came, so that the workspace's blocks speak of it. */
  sampledRaw = false;
  private readonly row: Row = { logits: new Float32Array(0), highest: 0, coldness: 1 };

  constructor(
    parameters: SamplingParameters,
    identity: DrawIdentity,
    vocabulary: SamplerVocabulary,
    workspace: SamplerWorkspace,
  ) {
    const { allowedTokenIds, mirostat, topK, topNSigma } = parameters;
    this.parameters = parameters;
    this.workspace = workspace;
    this.draws = new DrawSource(identity);
    this.allowed = allowedTokenIds && bitSetOf(allowedTokenIds, workspace.vocabularySize);
    this.processors = LOGIT_PROCESSORS.map((create) => create(parameters, vocabulary, workspace)).filter(
      (processor) => processor !== null,
    );
    this.truncations = TRUNCATIONS.map((create) => create(parameters, this.draws)).filter(
      (truncation) => truncation !== null,
    );
    this.truncates = this.truncations.length > 0 || topK > 0 || topNSigma > 0;
    this.isNucleusAlone = isNucleusAlone(parameters);
    this.mirostat = mirostat === 0 ? null : new Mirostat(mirostat, parameters);
    this.takesRaw = this.allowed === null && this.processors.length === 0;
  }

  /** At this coldness the sums of the next row will most likely be asked for; null = they will not. */
  get sumsAt(): number | null {
    const { temperature, dynatempRange } = this.parameters;
    if (temperature < GREEDY_BELOW || dynatempRange !== 0 || this.mirostat !== null) return null;
    return !this.truncates || (this.isNucleusAlone && !this.drewWide) ? 1 / temperature : null;
  }

  /**
   * The next token's id.
   * @param logits one raw row, float32 per token id; not modified.
   * @param step how many tokens this sequence has generated before; keys the draw.
   * @param mask bit set of the tokens a constraint allows (bit id & 31 of word id >>> 5), or null.
   * @param forbidden ids that may not come next, such as end tokens before min_tokens.
   * @throws InvalidLogitsError when the row holds NaN or +∞, NoCandidatesError when nothing is left to sample.
   */
  sample(
    logits: Float32Array,
    history: TokenHistory,
    step: number,
    mask: Uint32Array | null,
    forbidden: readonly number[],
  ): number {
    const row = this.row;
    row.logits = this.process(logits, history, mask, forbidden);
    this.sampledRaw = row.logits === logits;
    const best = this.workspace.blocks.argmax(row.logits);
    row.highest = row.logits[best]!;
    const temperature = this.temperature(row.logits, row.highest);
    if (temperature < GREEDY_BELOW) return best;
    row.coldness = 1 / temperature;
    const uniform = this.draws.uniform(step, DRAW_TOKEN);
    if (this.mirostat) return this.mirostat.draw(row, uniform, this.workspace);
    if (!this.truncates) return drawFromRow(row, uniform, this.workspace);
    if (this.isNucleusAlone) {
      const drawn = drawFromWideNucleus(row, this.parameters, uniform, this.workspace);
      this.drewWide = drawn >= 0;
      if (this.drewWide) return drawn;
    }
    shortlist(row, this.parameters, this.workspace);
    for (const truncation of this.truncations) truncation.apply(this.workspace, step);
    const { candidates } = this.workspace;
    return candidates.ids[candidates.draw(uniform)]!;
  }

  /** The row itself where nothing changes it, else its processed copy in the workspace. */
  private process(
    logits: Float32Array,
    history: TokenHistory,
    mask: Uint32Array | null,
    forbidden: readonly number[],
  ): Float32Array {
    if (logits.length !== this.workspace.vocabularySize) {
      throw new RangeError(`row of ${logits.length} logits, vocabulary of ${this.workspace.vocabularySize}`);
    }
    if (this.takesRaw && mask === null && forbidden.length === 0) return logits;
    const { scores } = this.workspace;
    copyMasked(scores, logits, mask, this.allowed);
    for (const id of forbidden) scores[id] = Number.NEGATIVE_INFINITY;
    for (const processor of this.processors) processor.apply(scores, history);
    return scores;
  }

  private temperature(logits: Float32Array, highest: number): number {
    const { temperature, dynatempRange, dynatempExponent } = this.parameters;
    if (temperature < GREEDY_BELOW || dynatempRange === 0) return temperature;
    return dynamicTemperature(logits, highest, temperature, dynatempRange, dynatempExponent);
  }
}
