import type { DecoderDesign, LayerDesign } from '../design/decoder-design.ts';
import type { ExpertsDesign, MlpDesign } from '../design/feed-forward-design.ts';
import type { AttentionDesign, MixerDesign } from '../design/mixer-design.ts';
import type { NormDesign, Weight } from '../design/weight-design.ts';

/** A tensor of Hugging Face's checkpoint that the converter has stored under another name. */
export interface ConvertedTensor {
  /** Hugging Face's name; those of all matrices, if the file has them in one stack. */
  readonly names: readonly string[];
  readonly isStack: boolean;
  /** Hugging Face's file has [inputs, outputs], where llama.cpp's has [outputs, inputs]. */
  readonly transposed: boolean;
  /** What the converter has added to the values. */
  readonly offset: 0 | 1;
}

/** What may be at a place of a decoder. */
interface Place {
  readonly weight?: Weight | null;
  readonly bias?: Weight | null;
  readonly scale?: Weight | null;
  readonly weightOffset?: NormDesign['weightOffset'];
  readonly isStack?: boolean;
}

type Places = Readonly<Record<string, Place | null | undefined>>;

/** Returns the tensors of a decoder by llama.cpp's names, such as `blk.0.attn_q.weight`. */
export function convertedTensors(design: DecoderDesign): ReadonlyMap<string, ConvertedTensor> {
  const tensors = new Map<string, ConvertedTensor>();
  const add = (prefix: string, places: Places) => {
    for (const [base, place] of Object.entries(places)) {
      for (const part of ['weight', 'bias', 'scale'] as const) {
        const weight = place?.[part] ?? [];
        if (weight.length > 0) tensors.set(`${prefix}${base}.${part}`, converted(place!, part, weight));
      }
    }
  };
  add('', placesOfModel(design));
  for (const [index, layer] of design.layers.entries()) add(`blk.${index}.`, placesOfLayer(layer));
  return tensors;
}

function converted(place: Place, part: 'weight' | 'bias' | 'scale', weight: Weight): ConvertedTensor {
  const names = [...new Set(weight.map(({ tensor }) => tensor))];
  return {
    names,
    isStack: place.isStack ?? names.length > 1,
    transposed: weight[0]!.transposed ?? false,
    offset: part === 'weight' ? (place.weightOffset ?? 0) : 0,
  };
}

const placesOfModel = (design: DecoderDesign): Places => ({
  token_embd: { weight: design.embedding },
  // LFM2's norm before the head has the name of a norm of the embedding.
  token_embd_norm: design.embeddingNorm ?? design.finalNorm,
  position_embd: design.learnedPositions,
  output_norm: design.finalNorm,
  output: design.head,
  per_layer_token_embd: { weight: design.tokenInputs?.embedding ?? null },
  per_layer_model_proj: design.tokenInputs?.projection,
  per_layer_proj_norm: design.tokenInputs?.norm,
  altup_proj: stack(design.streams?.into ?? []),
  altup_unembd_proj: stack(design.streams?.outOf ?? []),
});

const placesOfLayer = (layer: LayerDesign): Places => ({
  // A layer of one block has one norm.
  attn_norm: layer.attentionNorm ?? layer.feedForwardNorm,
  ffn_norm: layer.feedForwardNorm,
  // Some architectures have the name that Hugging Face gives the norm before the MLP.
  post_attention_norm: layer.attentionOutputNorm ?? layer.feedForwardNorm,
  post_ffw_norm: layer.feedForwardOutputNorm,
  laurel_l: layer.lowRank?.down,
  laurel_r: layer.lowRank?.up,
  laurel_post_norm: layer.lowRank?.norm,
  inp_gate: layer.tokenInput?.gate,
  proj: layer.tokenInput?.projection,
  post_norm: layer.tokenInput?.norm,
  layer_output_scale: { weight: layer.outputScale },
  altup_router: layer.altUp?.router,
  altup_router_norm: layer.altUp?.norm,
  altup_predict_coef: layer.altUp?.prediction,
  altup_correct_coef: layer.altUp?.correction,
  altup_correct_scale: { weight: layer.altUp?.tokenInputScale ?? null },
  ...placesOfMixer(layer.attention),
  ...placesOfFeedForward(layer.feedForward),
});

function placesOfMixer(mixer: MixerDesign | null): Places {
  switch (mixer?.kind) {
    case 'attention':
      return placesOfAttention(mixer);
    case 'parallel':
      return { ...placesOfAttention(mixer.attention), ...placesOfMixer(mixer.stateSpace) };
    case 'convolution':
      return {
        'shortconv.in_proj': mixer.input,
        'shortconv.conv': mixer.kernel,
        'shortconv.out_proj': mixer.output,
      };
    case 'linear-attention':
      return {
        attn_qkv: mixer.query,
        attn_gate: mixer.gate,
        ssm_beta: mixer.rate,
        ssm_ba: mixer.rate,
        ssm_alpha: mixer.decay,
        ssm_conv1d: mixer.kernel,
        ssm_dt: { bias: mixer.decayBias },
        ssm_a: { weight: mixer.logDecay },
        ssm_norm: mixer.norm,
        ssm_out: mixer.output,
      };
    case 'state-space':
      return {
        ssm_in: mixer.input,
        ssm_conv1d: mixer.kernel,
        ssm_dt: { bias: mixer.stepBias },
        ssm_a: { weight: mixer.logDecay },
        ssm_d: { weight: mixer.skip },
        ssm_norm: mixer.norm,
        ssm_out: mixer.output,
      };
    default:
      return {};
  }
}

const placesOfAttention = ({ latent, query, key, value, ...attention }: AttentionDesign): Places => ({
  attn_q: query,
  attn_k: key,
  attn_v: value,
  attn_qkv: query,
  attn_output: attention.output,
  attn_q_norm: attention.queryNorm,
  attn_k_norm: attention.keyNorm,
  attn_sinks: { weight: attention.sinks },
  attn_q_a: latent?.query?.projection,
  attn_q_a_norm: latent?.query?.norm,
  attn_q_b: query,
  attn_kv_a_mqa: latent?.keyValue.projection,
  attn_kv_a_norm: latent?.keyValue.norm,
  attn_kv_b: key,
  attn_k_b: key,
});

function placesOfFeedForward(feedForward: LayerDesign['feedForward']): Places {
  if (feedForward === null) return {};
  if (feedForward.kind === 'mlp') return placesOfMlp(feedForward);
  if (feedForward.kind === 'experts') return placesOfExperts(feedForward);
  return {
    ...placesOfMlp(feedForward.mlp),
    ...placesOfExperts(feedForward.experts),
    post_ffw_norm_1: feedForward.mlpOutputNorm,
    pre_ffw_norm_2: feedForward.expertsNorm,
    post_ffw_norm_2: feedForward.expertsOutputNorm,
  };
}

const placesOfMlp = ({ gate, up, down, activation }: MlpDesign): Places => ({
  ffn_gate: gate,
  ffn_up: up,
  ffn_down: down,
  ...(typeof activation === 'object' && {
    'xielu.alpha_p': { weight: activation.alphaP },
    'xielu.alpha_n': { weight: activation.alphaN },
  }),
});

function placesOfExperts({ experts, router, shared }: ExpertsDesign): Places {
  const gates = stack(experts.map(({ gate }) => gate));
  return {
    ffn_gate_inp: { ...router.projection, scale: router.input?.norm.weight ?? null },
    exp_probs_b: { bias: router.correction },
    ffn_gate_exps: gates,
    ffn_gate_up_exps: gates,
    ffn_up_exps: stack(experts.map(({ up }) => up)),
    ffn_down_exps: { ...stack(experts.map(({ down }) => down)), scale: router.expertScales },
    ffn_gate_shexp: shared?.mlp.gate,
    ffn_up_shexp: shared?.mlp.up,
    ffn_down_shexp: shared?.mlp.down,
    ffn_gate_inp_shexp: shared?.gate,
  };
}

/** Matrices that the file has in one stack. They are one in Hugging Face's file, too, if parts say which. */
function stack(places: readonly (Place | null)[]): Place {
  const weight = places.flatMap((place) => place?.weight ?? []);
  const bias = places.flatMap((place) => place?.bias ?? []);
  return { weight, bias, isStack: weight[0]?.matrix === undefined };
}
