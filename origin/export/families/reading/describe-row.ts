import type { DecoderDesign, LayerDesign } from '../../design/decoder-design.ts';
import type { Activation, MlpDesign } from '../../design/feed-forward-design.ts';
import type { AttentionDesign, HeadNormDesign, MixerDesign } from '../../design/mixer-design.ts';
import { type NormDesign, type ProjectionDesign, type RowRange, whole } from '../../design/weight-design.ts';
import type { ConfigFields } from './config-fields.ts';
import {
  type Biases,
  type DecoderRow,
  type Differences,
  type LayerDifferences,
  LLAMA_NAMES,
  type Names,
  type NormStyle,
} from './decoder-row.ts';
import { describeExperts } from './describe-experts.ts';
import { chosenRows, interleaved, projection, readActivation } from './design-parts.ts';
import { readRotary } from './rotary.ts';
import { readSizes, type Sizes } from './sizes.ts';

/** Turns a row of the table into the design of a decoder. */

/**
 * @param outer config.json, in whose text_config `fields` may be
 * @throws ModelError that names a field which is missing or has an unsupported value
 */
export function describeRow(row: DecoderRow, fields: ConfigFields, outer: ConfigFields): DecoderDesign {
  const sizes = readSizes(fields, row);
  fields.inner('pruned_heads'); // Any is refused as a field that nothing reads.
  for (const [name, allowed] of Object.entries(row.requires ?? {})) fields.require(name, ...allowed);
  const differences = row.differences({ fields, sizes });
  return new RowDesigner(fields, { ...sizes, ...differences.sizes }, differences).decoder(outer);
}

/** Describes one decoder. `#d` = how it differs from Llama. */
class RowDesigner {
  readonly #fields: ConfigFields;
  readonly #sizes: Sizes;
  readonly #d: Differences;
  readonly #names: Names;
  readonly #biases: Biases;

  constructor(fields: ConfigFields, sizes: Sizes, differences: Differences) {
    this.#fields = fields;
    this.#sizes = sizes;
    this.#d = differences;
    this.#names = { ...LLAMA_NAMES, ...differences.names };
    this.#biases = { qkv: false, output: false, mlp: false, head: false, ...differences.biases };
  }

  decoder(outer: ConfigFields): DecoderDesign {
    const { vocabulary, hidden, layers, headSize, positions } = this.#sizes;
    const { rotary, slidingRotary = rotary, tied = false, maxPositions = Infinity } = this.#d;
    const options = { headSize, positions };
    const full = rotary === null ? null : readRotary(this.#fields, { ...options, ...rotary });
    const sliding =
      slidingRotary === null ? null : readRotary(this.#fields, { ...options, ...slidingRotary });
    const embedding = `${this.#names.embedding}.weight`;
    const isTied = outer.flag('tie_word_embeddings', this.#fields.flag('tie_word_embeddings', tied));
    const head = projection(this.#names.head, this.#biases.head);
    return {
      vocabulary,
      hidden,
      maxPositions: Math.min(
        positions,
        full?.maxPositions ?? Infinity,
        sliding?.maxPositions ?? Infinity,
        maxPositions,
      ),
      embedding: whole(embedding),
      embeddingScale: 1,
      embeddingNorm: null,
      embeddingProjection: null,
      learnedPositions: null,
      tokenInputs: null,
      streams: null,
      layers: Array.from({ length: layers }, (_, index) => {
        const differences = this.#d.layer?.(index) ?? {};
        const positionsOf = (differences.window ?? null) === null ? full : sliding;
        return this.#layer(
          index,
          differences,
          differences.rotated === false ? null : (positionsOf?.rotary ?? null),
        );
      }),
      finalNorm: this.#names.finalNorm === '' ? null : this.#norm(this.#names.finalNorm),
      head: isTied ? { ...head, weight: whole(embedding) } : head,
      separateHead: head.weight,
      logitScale: 1,
      logitSoftCap: null,
      ...this.#d.decoder,
    };
  }

  #layer(index: number, differences: LayerDifferences, rotary: AttentionDesign['rotary']): LayerDesign {
    const name = `${this.#names.layers}.${index}`;
    const normOf = (which: string): NormDesign | null =>
      which === '' ? null : this.#norm(`${name}.${which}`);
    const { experts = null, residual = 'sequential', residualScale = 1 } = this.#d;
    const { only, parts } = differences;
    const mlp = (): MlpDesign => ({ ...this.#mlp(name, differences.sizes?.width), ...differences.mlp });
    const feedForward = (): NonNullable<LayerDesign['feedForward']> => {
      if (experts === null || differences.sparse === false) return mlp();
      const { hidden } = this.#sizes;
      const made = describeExperts(this.#fields, name, experts, this.#activation(name), hidden, mlp());
      const { beside } = differences;
      if (beside === undefined) return made;
      const norm = (which: keyof typeof beside) => this.#norm(`${name}.${beside[which]}`);
      return {
        kind: 'mlp-and-experts',
        mlp: mlp(),
        mlpOutputNorm: norm('mlpOutputNorm'),
        experts: made,
        expertsNorm: norm('expertsNorm'),
        expertsOutputNorm: norm('expertsOutputNorm'),
      };
    };
    const names = { ...this.#names, ...differences.names };
    return {
      attention: only === 'feed-forward' ? null : this.#mixer(name, differences, rotary),
      feedForward: only === 'mixer' ? null : feedForward(),
      residual,
      attentionNorm: only === 'feed-forward' ? null : normOf(names.attentionNorm),
      feedForwardNorm: only === 'mixer' ? null : normOf(names.feedForwardNorm),
      attentionOutputNorm: normOf(names.attentionOutputNorm),
      feedForwardOutputNorm: normOf(names.feedForwardOutputNorm),
      afterAttentionNorm: normOf(names.afterAttentionNorm),
      afterFeedForwardNorm: normOf(names.afterFeedForwardNorm),
      residualScale,
      lowRank: null,
      tokenInput: null,
      outputScale: null,
      altUp: null,
      ...parts,
    };
  }

  #mixer(name: string, differences: LayerDifferences, rotary: AttentionDesign['rotary']): MixerDesign {
    const { mixer, parallel } = differences;
    if ((mixer ?? null) !== null) return mixer!;
    const attention = this.#attention(name, differences, rotary);
    return parallel === undefined ? attention : { kind: 'parallel', attention, ...parallel };
  }

  #attention(
    name: string,
    differences: LayerDifferences,
    rotary: AttentionDesign['rotary'],
  ): AttentionDesign {
    const { heads, kvHeads, headSize } = { ...this.#sizes, ...differences.sizes };
    const { sinks, queryNorm, keyNorm, value } = { ...this.#names, ...differences.names };
    return {
      kind: 'attention',
      sharedWith: differences.sharedWith ?? null,
      heads,
      kvHeads,
      headSize,
      ...this.#inputs(name, value),
      output: this.#stored(`${name}.${this.#names.output}`, this.#biases.output),
      clip: null,
      queryNorm: this.#headNorm(`${name}.${queryNorm}`, heads),
      keyNorm: this.#headNorm(`${name}.${keyNorm}`, kvHeads),
      valueNorm: this.#d.normedValues ? { ...this.#norm(''), over: 'head', weight: null } : null,
      normPlace: 'before-rotary',
      queryScaling: null,
      softCap: null,
      slopes: null,
      ...this.#d.attention,
      scale: differences.scale ?? this.#d.attention?.scale ?? 1 / Math.sqrt(headSize),
      window: differences.window ?? null,
      sinks: sinks === '' ? null : whole(`${name}.${sinks}`),
      rotary,
      ...differences.attention,
    };
  }

  #inputs(name: string, value: string): Pick<AttentionDesign, 'latent' | 'query' | 'key' | 'value' | 'gate'> {
    const { fused = null, transposed = false, gatedHeads = false, projections } = this.#d;
    if (projections !== undefined) return { ...projections(name), gate: null };
    const { query, key, qkv } = this.#names;
    const of = (projection: string) => this.#stored(`${name}.${projection}`, this.#biases.qkv);
    const plain = { latent: null, key: of(key), value: of(value) };
    if (gatedHeads) {
      const { heads, headSize } = this.#sizes;
      const half = (offset: number) =>
        chosenRows(of(query), interleaved(heads, 2 * headSize, offset, headSize));
      return { ...plain, query: half(0), gate: half(headSize) };
    }
    if (fused === null) return { ...plain, query: of(query), gate: null };
    const rows = fusedRows(fused, this.#sizes);
    const part = (which: keyof typeof rows): ProjectionDesign => {
      const tensor = `${name}.${qkv}`;
      return {
        weight: [{ tensor: `${tensor}.weight`, rows: rows[which], transposed }],
        bias: this.#biases.qkv ? [{ tensor: `${tensor}.bias`, rows: rows[which] }] : null,
      };
    };
    return { latent: null, query: part('query'), key: part('key'), value: part('value'), gate: null };
  }

  #mlp(name: string, width = this.#sizes.width): MlpDesign {
    const { mlp = 'gated' } = this.#d;
    const { gate, up, gateUp, down } = this.#names;
    const of = (projection: string) => this.#stored(`${name}.${projection}`, this.#biases.mlp);
    const half = (first: number): ProjectionDesign => {
      const rows = [{ first, count: width }];
      return { weight: [{ tensor: `${name}.${gateUp}.weight`, rows }], bias: null };
    };
    const gates = { gated: () => of(gate), fused: () => half(0), plain: () => null };
    return {
      kind: 'mlp',
      width,
      gate: gates[mlp](),
      up: mlp === 'fused' ? half(width) : of(up),
      down: of(down),
      activation: this.#activation(name),
      ...(this.#d.mlpMultipliers !== undefined && { multipliers: this.#d.mlpMultipliers }),
    };
  }

  #activation(layer: string): Activation {
    const { activation = 'hidden_act' } = this.#d;
    return typeof activation === 'string'
      ? readActivation(this.#fields, activation, 'silu')
      : activation(layer);
  }

  #stored(name: string, bias: boolean): ProjectionDesign {
    const made = projection(name, bias);
    return this.#d.transposed ? { ...made, weight: [{ tensor: `${name}.weight`, transposed: true }] } : made;
  }

  #norm(name: string): NormDesign {
    const style: NormStyle = this.#d.norm ?? { kind: 'rms', epsilon: 'rms_norm_eps' };
    const { kind, epsilon, weightOffset = 0, weighted = true, biased = false } = style;
    return {
      kind,
      epsilon: typeof epsilon === 'number' ? epsilon : this.#fields.number(epsilon),
      weight: weighted ? whole(`${name}.weight`) : null,
      bias: biased ? whole(`${name}.bias`) : null,
      weightOffset,
    };
  }

  #headNorm(name: string, heads: number): HeadNormDesign | null {
    const { headNorm = null } = this.#d;
    if (headNorm === null) return null;
    const { over, apart = false, biased = false } = headNorm;
    const parts = Array.from({ length: heads }, (_, head) => ({ tensor: `${name}.norms.${head}.weight` }));
    return {
      ...this.#norm(name),
      over,
      weight: apart ? parts : whole(`${name}.weight`),
      bias: biased ? whole(`${name}.bias`) : null,
    };
  }
}

/**
 * - blocks: all queries, then all keys, then all values (GPT-2, Phi 3)
 * - by-kv-head: for each KV head its queries, its key and its value (GPT-NeoX and BLOOM with one query each,
 *   Falcon, InternLM 2)
 */
function fusedRows(
  order: 'blocks' | 'by-kv-head',
  { heads, kvHeads, headSize }: Pick<AttentionDesign, 'heads' | 'kvHeads' | 'headSize'>,
) {
  const groups = order === 'blocks' ? 1 : kvHeads;
  const queries = (heads / groups) * headSize;
  const keys = (kvHeads / groups) * headSize;
  const rows = (offset: number, count: number): RowRange[] =>
    Array.from({ length: groups }, (_, group) => ({ first: group * (queries + 2 * keys) + offset, count }));
  return { query: rows(0, queries), key: rows(queries, keys), value: rows(queries + keys, keys) };
}
