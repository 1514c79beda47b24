import type { DrawRequest } from '../model/device-draws.ts';
import type { SparseRow } from '../model/sparse-logits.ts';
import type { TokenBytes } from '../tokenizer/token-bytes.ts';
import type { LogitEdits } from './logit-edits.ts';
import type { LogitProcessor } from './logits/processor.ts';
import { LOGIT_PROCESSORS } from './logits/processors.ts';
import { bitSetOf, copyMasked } from './masked-copy.ts';
import type { SamplerParameters } from './parameters.ts';
import type { DrawIdentity } from './rng.ts';
import type { RowEdits } from './row-edits.ts';
import { TokenDraw } from './token-draw.ts';
import type { TokenHistory } from './token-history.ts';
import type { SamplerWorkspace } from './workspace.ts';

/** With more edits, a whole row is faster: each may bring a block of its own. */
const MOST_SPARSE_EDITS = 64;

/**
 * Turns one sequence's logits into tokens. The order: masks and bans → bad words → logit bias → repetition →
 * frequency and presence → DRY → the draw (TokenDraw). A token is a function of the parameters, the logits'
 * bits, the history, the identity and the step, and with Mirostat of the surprise of the sequence's earlier
 * tokens.
 */
export class Sampler {
  readonly draw: TokenDraw;
  readonly #workspace: SamplerWorkspace;
  /** Bit set of the tokens that are ever allowed; null = all. */
  readonly allowed: Uint32Array | null;
  readonly #processors: readonly LogitProcessor[];
  /** Whether the workspace's row is still the raw row that was sampled last. */
  sampledRaw = false;
  /** Edits of the last row. */
  #edits = 0;

  constructor(
    parameters: SamplerParameters,
    identity: DrawIdentity,
    tokenBytes: TokenBytes,
    workspace: SamplerWorkspace,
  ) {
    const { allowedTokenIds } = parameters;
    this.draw = new TokenDraw(parameters, identity, workspace);
    this.#workspace = workspace;
    this.allowed = allowedTokenIds && bitSetOf(allowedTokenIds, workspace.vocabularySize);
    this.#processors = LOGIT_PROCESSORS.map((create) => create(parameters, tokenBytes, workspace)).filter(
      (processor) => processor !== null,
    );
  }

  /** The draw's coldness if nothing masks the row; null if it needs whole rows, or many edits change them. */
  get coldness(): number | null {
    return this.#edits <= MOST_SPARSE_EDITS ? this.draw.coldness : null;
  }

  /** Returns the tokens that mask and parameters allow, in the mask if any; null = all. */
  restrict(mask: Uint32Array | null): Uint32Array | null {
    const { allowed } = this;
    if (mask === null || allowed === null) return mask ?? allowed;
    for (let word = 0; word < mask.length; word++) mask[word]! &= allowed[word]!;
    return mask;
  }

  /**
   * Returns the next token's id.
   * @param logits one raw row, float32 per token id; not modified
   * @param step how many tokens this sequence has generated before; keys the draw
   * @param mask bit set of the tokens that a constraint allows (bit id & 31 of word id >>> 5), or null; may
   *   be restricted
   * @param forbidden ids that may not come next, such as end tokens before min_tokens
   * @throws InvalidLogitsError if the row holds NaN or +∞, NoCandidatesError if all tokens are forbidden
   */
  sample(
    logits: Float32Array,
    history: TokenHistory,
    step: number,
    mask: Uint32Array | null,
    forbidden: readonly number[],
  ): number {
    const token = this.draw.from(this.process(logits, history, mask, forbidden), step);
    this.sampledRaw = this.#workspace.row.logits === logits;
    return token;
  }

  /** Returns the processed row: the row itself if nothing changes it, else a copy in the workspace. */
  process(
    logits: Float32Array,
    history: TokenHistory,
    mask: Uint32Array | null,
    forbidden: readonly number[],
  ): Float32Array {
    const { edited } = this.#workspace;
    const allowed = this.restrict(mask);
    const edits = this.edit(logits, history, forbidden, null, allowed);
    if (allowed !== null) copyMasked(edited, logits, allowed);
    else if (edits.changed.count === 0) return logits;
    else edited.set(logits);
    edits.applyTo(edited);
    return edited;
  }

  /**
   * Returns what the processors change in a row; valid until the workspace's next row.
   * @param sparse what is known of a row of which not all logits are here
   * @param mask bit set of the tokens that may come, of which the others are not changed; null = all
   */
  edit(
    logits: Float32Array,
    history: TokenHistory,
    forbidden: readonly number[],
    sparse: SparseRow | null = null,
    mask: Uint32Array | null = null,
  ): RowEdits {
    const { edits } = this.#workspace;
    edits.begin(logits, sparse, mask);
    this.#applyTo(edits, history, forbidden);
    this.#edits = edits.changed.count;
    return edits;
  }

  /**
   * Returns what a device needs to draw the next token; null if it cannot.
   * @param mask as `restrict` returns it; not modified before the device has drawn
   * @param listed how many of the most likely tokens to list; null = no logprobs
   */
  request(
    history: TokenHistory,
    step: number,
    mask: Uint32Array | null,
    forbidden: readonly number[],
    listed: number | null,
  ): DrawRequest | null {
    const draw = this.draw.requestAt(step);
    if (draw === null) return null;
    const { editList } = this.#workspace;
    editList.begin(mask);
    this.#applyTo(editList, history, forbidden);
    return { ...draw, listed, mask, edits: editList.take() };
  }

  #applyTo(edits: LogitEdits, history: TokenHistory, forbidden: readonly number[]): void {
    for (const id of forbidden) edits.forbid(id);
    for (const processor of this.#processors) processor.apply(edits, history);
  }
}
