import { describe, expect, it } from 'vitest';
import { describeFamily } from '../../../origin/export/families/families.ts';
import { CASES } from './family-cases.ts';

/** Fields that published files have beside those that transformers reads, and forms that it wrote for a while. */

type Fields = Readonly<Record<string, unknown>>;

const caseOf = (name: string) => CASES.find((one) => one.name === name)!;
const designOf = (config: Fields): unknown => describeFamily(config, new Set()).design;

/** The parameters of generation and the bookkeeping that transformers wrote to config.json before 4.41. */
const OLD_DUMP: Fields = {
  ...{
    max_length: 4096,
    min_length: 0,
    do_sample: true,
    temperature: 0.6,
    top_k: 50,
    top_p: 0.9,
    num_beams: 1,
  },
  ...{ repetition_penalty: 1.1, no_repeat_ngram_size: 0, forced_eos_token_id: 2, early_stopping: false },
  ...{ pruned_heads: {}, add_cross_attention: false, tie_encoder_decoder: false, is_encoder_decoder: false },
  ...{ tokenizer_class: 'LlamaTokenizer', torchscript: false, use_bfloat16: false, tf_legacy_loss: false },
};

describe('config.json as published', () => {
  it.each([
    ['SmolLM2', 'llama', { is_llama_config: true, rope_interleaved: false, 'transformers.js_config': {} }],
    ['Falcon 3', 'llama', { activation: 'swiglu' }],
    ['LLaMA', 'llama', { max_sequence_length: 2048 }],
    ['Llama with an old dump', 'llama', OLD_DUMP],
    ['GPT-2 medium and large', 'gpt2', { n_special: 0, predict_special_tokens: true }],
    ['GPT-2 XL', 'gpt2', { output_past: true }],
    ['DistilGPT-2', 'gpt2', { _num_labels: 1 }],
  ])('of %s may have its fields that no logit depends on', (_, name, fields) => {
    const { config } = caseOf(name);
    expect(designOf({ ...config, ...fields })).toEqual(designOf(config));
  });

  it.each([
    ['llama', { rope_interleaved: true }, /rope_interleaved is true; supported is false/],
    ['llama', { activation: 'gelu' }, /activation is "gelu"; supported is "swiglu"/],
    ['gpt2', { pruned_heads: { 0: [1, 2] } }, /field pruned_heads\.0 is unknown/],
    ['gpt2', { add_cross_attention: true }, /add_cross_attention is true; supported is false/],
    ['minicpm', { rope_scaling: { type: 'dynamic' } }, /rope_scaling is {.*}; supported is null$/],
    ['granitemoehybrid', { layer_types: ['attention', 'mamba'] }, /layer_types has mamba; supported are/],
    [
      'granitemoehybrid',
      { layer_types: ['attention'] },
      /layer_types is \["attention"\]; supported is 2 types/,
    ],
    ['granitemoehybrid', { num_local_experts: 8 }, /num_local_experts is 8; supported is 0/],
    ['granitemoehybrid', { position_embedding_type: null }, /position_embedding_type is null; supported/],
    ['granitemoehybrid', { layer_types: undefined }, /layer_types has mamba; supported are/],
    ['ministral3', { rope_parameters: null }, /rope_parameters is null; supported is an object/],
  ])('of %s is refused with %j', (name, fields, message) => {
    expect(() => designOf({ ...caseOf(name).config, ...fields })).toThrow(message);
  });

  it('of LLaMA may name its context max_sequence_length', () => {
    const { max_position_embeddings: positions, ...config } = caseOf('llama').config;
    expect(designOf({ ...config, max_sequence_length: positions })).toEqual(designOf(caseOf('llama').config));
  });

  it('of Phi 3 may name the original context twice, of which the outer one counts', () => {
    const { config } = caseOf('phi3-longrope');
    const scaling = { ...(config.rope_scaling as Fields), original_max_position_embeddings: 64 };
    expect(designOf({ ...config, rope_scaling: scaling })).toEqual(designOf(config));
  });

  it.each(['olmo3', 'gemma3_text'])(
    'of %s scales the positions of full attention only, also with one rope_parameters for all layers',
    (name) => {
      const { rope_scaling: scaling, rope_theta: theta = 500_000, ...config } = caseOf(name).config;
      const flat = { ...config, rope_parameters: { ...(scaling as Fields), rope_theta: theta } };
      expect(designOf(flat)).toEqual(designOf(caseOf(name).config));
    },
  );
});
