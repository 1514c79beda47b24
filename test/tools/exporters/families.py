"""Writes small random models of every family that the builder knows, with the logits that transformers computes.

    python families.py OUTPUT [--fixtures FILE] [--case NAME ...]

Each case becomes OUTPUT/NAME with config.json, model.safetensors, tokenizer.json and reference.json: the greedy tokens
after several prompts, and beside it logits.bin, the float32 logits of every position of the longest prompt. What is
there already is kept. FILE gets a line for each case: configuration, shapes of tensors, greedy tokens and some logits of a
few positions, so that a test can make the same weights again. Weights are a hash of the tensor's name and the element's
index; test/origin/export/hashed-checkpoint.ts has the same formula.
"""

import argparse
import base64
import copy
import json
import math
import re
from pathlib import Path

import numpy
import torch
import transformers
from safetensors.numpy import load_file, save_file

VOCABULARY = 250
POSITIONS = 256
WINDOW = 48
LONGEST = 200
#: Lengths of the prompts that are continued, and positions whose logits are stored.
PROMPTS = [1, 7, 48, 65, 130, 200]
STORED = [6, 64, 199]
#: Logits that a fixture has of the positions before the last one: those of the first tokens.
FEW_LOGITS = 32
NEW_TOKENS = 8
#: The longest prompt of families with states and of some others, which have more positions.
LONGEST_WITH_STATES = 300
STATE_POSITIONS = 512
LONGER = (
    "lfm2", "lfm2_moe", "qwen3_next", "qwen3_5_text", "qwen3_5", "qwen3_5_moe_text", "qwen3_5_moe",
    "olmo_hybrid", "bamba", "granitemoehybrid", "falcon_h1", "nemotron_h", "mamba2",
    "kimi_linear", "zamba2", "recurrent_gemma", "gemma3n_text", "gemma3n",
)


def sizes(head=64, heads=4, kv=2, layers=2, hidden=None, **fields):
    return dict(
        hidden_size=hidden or 96, num_attention_heads=heads, num_key_value_heads=kv, num_hidden_layers=layers,
        head_dim=head, intermediate_size=112, max_position_embeddings=POSITIONS,
    ) | fields


def square(heads=4, head=64, **fields):
    """Sizes of families whose heads together are as wide as the model."""
    made = sizes(heads=heads, hidden=heads * head, **fields)
    del made["head_dim"]
    return made


def gpt(heads=2, head=64, layers=2, **fields):
    return dict(n_embd=heads * head, n_head=heads, n_layer=layers, n_positions=POSITIONS) | fields


LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = dict(type="yarn", factor=4.0, original_max_position_embeddings=64)


def longrope(pairs, **fields):
    return dict(type="longrope", short_factor=[1 + i / 64 for i in range(pairs)],
                long_factor=[1 + i / 2 for i in range(pairs)]) | fields


def latent(head=(40, 24, 32), heads=4, layers=2, hidden=96, **fields):
    """Sizes of latent attention: `head` has the values of a head that are not rotated, those that are, and of values."""
    plain, rotated, value = head
    return dict(
        hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=heads, num_hidden_layers=layers,
        intermediate_size=112, max_position_embeddings=POSITIONS, qk_nope_head_dim=plain, qk_rope_head_dim=rotated,
        v_head_dim=value, kv_lora_rank=36,
    ) | fields


ALTERNATING = ["sliding_attention", "full_attention"]

#: YaRN and the scaling of queries as Ministral 3 writes them, with a shorter original context.
SCALED_QUERIES = dict(rope_type="yarn", type="yarn", rope_theta=1e6, factor=8.0, original_max_position_embeddings=32,
                      max_position_embeddings=POSITIONS, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
                      mscale_all_dim=1.0, llama_4_scaling_beta=0.1)


def mistral3(**text):
    """A model of text and images. transformers ties its head unless the outer configuration says otherwise."""
    return dict(
        image_token_index=VOCABULARY - 1, spatial_merge_size=2, vision_feature_layer=-1,
        text_config=sizes(vocab_size=VOCABULARY, sliding_window=None, **text),
        vision_config=dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, head_dim=16,
                           image_size=28, patch_size=14, model_type="pixtral"),
    )


#: Positions of text and images, as Qwen 3.5 writes them.
IMAGE_POSITIONS = dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.25, mrope_interleaved=True,
                       mrope_section=[2, 1, 1])
VISION = dict(depth=1, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=80, num_position_embeddings=16,
              patch_size=4)
EXPERTS = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=40, shared_expert_intermediate_size=48)


def linear(key_heads, value_heads, key, value, **fields):
    """Gated delta networks in most layers, and positions for longer prompts."""
    recurrent = dict(linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, linear_key_head_dim=key,
                     linear_value_head_dim=value, linear_conv_kernel_dim=4, max_position_embeddings=STATE_POSITIONS)
    return sizes(**(recurrent | fields))


#: Configurations as published checkpoints write them. The family is the name before the first hyphen.
CASES = {
    "llama": sizes(head=80, heads=8, kv=1, rope_theta=500000.0, rms_norm_eps=1e-5),
    "llama-llama3": sizes(head=64, heads=6, kv=3, rope_theta=500000.0, rope_scaling=LLAMA3, tie_word_embeddings=True),
    "llama-linear": square(heads=3, head=64, kv=3, rope_scaling=dict(type="linear", factor=4.0)),
    "llama-dynamic": square(heads=4, head=64, kv=4, rope_scaling=dict(type="dynamic", factor=2.0)),
    "llama-yarn": sizes(head=128, heads=2, kv=1, rope_scaling=YARN | dict(beta_fast=24, mscale=0.8, mscale_all_dim=0.6)),
    "llama-bias": sizes(attention_bias=True, mlp_bias=True),
    "llama-new-form": sizes(rope_parameters=dict(rope_type="default", rope_theta=20000.0)),
    "llama4_text": sizes(head=48, heads=4, kv=2, layers=5, hidden=72, intermediate_size=56, intermediate_size_mlp=104,
                         num_local_experts=6, num_experts_per_tok=2, interleave_moe_layer_step=2, floor_scale=40,
                         attn_scale=0.3, attention_chunk_size=POSITIONS, rope_scaling=LLAMA3, rope_theta=500000.0,
                         no_rope_layers=[1, 0, 1, 1, 0], pad_token_id=0),
    "llama4": dict(
        boi_token_index=VOCABULARY - 1, eoi_token_index=VOCABULARY - 2, image_token_index=VOCABULARY - 3,
        tie_word_embeddings=False,
        text_config=sizes(head=32, heads=6, kv=3, layers=4, num_local_experts=5, num_experts_per_tok=1,
                          intermediate_size_mlp=88, use_qk_norm=False, attention_bias=True, vocab_size=VOCABULARY,
                          model_type="llama4_text", attn_temperature_tuning=False, no_rope_layers=[],
                          attention_chunk_size=2 * POSITIONS, moe_layers=[0, 1, 3], pad_token_id=0),
        vision_config=dict(model_type="llama4_vision_model", hidden_size=32, intermediate_size=128, num_hidden_layers=1,
                           num_attention_heads=2, image_size=28, patch_size=14, vision_output_dim=32,
                           projector_input_dim=32, projector_output_dim=32),
    ),
    "mistral": sizes(head=96, heads=7, kv=1, sliding_window=WINDOW, rope_theta=10000.0),
    "mistral-plain": sizes(sliding_window=None, rope_theta=1000000.0),
    "mistral3": dict(tie_word_embeddings=True) | mistral3(model_type="mistral", rope_theta=1e6),
    "mistral3-tied": mistral3(model_type="ministral3", head=96, tie_word_embeddings=True,
                              rope_parameters=SCALED_QUERIES),
    "ministral3": sizes(head=64, heads=6, kv=2, sliding_window=None, rope_parameters=SCALED_QUERIES),
    "mixtral": sizes(num_local_experts=5, num_experts_per_tok=2, sliding_window=None, rope_theta=1e6),
    "qwen2": square(heads=4, head=64, kv=2, use_sliding_window=False, sliding_window=WINDOW, rope_theta=1e6,
                    tie_word_embeddings=True),
    "qwen2-window": square(heads=2, head=64, kv=1, layers=4, use_sliding_window=True, sliding_window=WINDOW,
                           max_window_layers=2),
    "qwen2_moe": square(heads=4, head=64, layers=3, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=48,
                        shared_expert_intermediate_size=64, decoder_sparse_step=1, mlp_only_layers=[1]),
    "qwen3": sizes(head=128, heads=4, kv=2, rope_theta=1e6, tie_word_embeddings=True),
    "qwen3-yarn": sizes(head=96, heads=4, kv=4, rope_scaling=YARN | dict(attention_factor=1.1)),
    "qwen3_moe": sizes(head=64, heads=8, kv=2, layers=3, num_experts=8, num_experts_per_tok=3,
                       moe_intermediate_size=40, norm_topk_prob=True, decoder_sparse_step=2),
    "gemma": sizes(head=256, heads=2, kv=1, hidden_act="gelu", hidden_activation="gelu_pytorch_tanh"),
    "gemma2": sizes(head=256, heads=4, kv=2, layers=4, sliding_window=WINDOW, query_pre_attn_scalar=144,
                    attn_logit_softcapping=8.0, final_logit_softcapping=5.0, hidden_activation="gelu_pytorch_tanh"),
    "vaultgemma": sizes(head=256, heads=2, kv=2, layers=3, sliding_window=WINDOW, query_pre_attn_scalar=256,
                        attn_logit_softcapping=8.0, final_logit_softcapping=5.0,
                        hidden_activation="gelu_pytorch_tanh"),
    "gemma3_text": sizes(head=256, heads=4, kv=1, layers=7, sliding_window=WINDOW, query_pre_attn_scalar=256,
                         sliding_window_pattern=6, rope_local_base_freq=10000.0, rope_theta=1e6,
                         rope_scaling=dict(rope_type="linear", factor=8.0), hidden_activation="gelu_pytorch_tanh"),
    "gemma3": dict(
        image_token_index=VOCABULARY - 1, boi_token_index=VOCABULARY - 2, eoi_token_index=VOCABULARY - 3,
        mm_tokens_per_image=4,
        text_config=sizes(head=64, heads=4, kv=2, layers=6, sliding_window=WINDOW, query_pre_attn_scalar=64,
                          vocab_size=VOCABULARY, rope_theta=1e6, rope_local_base_freq=10000.0,
                          model_type="gemma3_text", hidden_activation="gelu_pytorch_tanh"),
        vision_config=dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                           image_size=28, patch_size=14, model_type="siglip_vision_model"),
    ),
    "gemma4_text": sizes(head=64, heads=4, kv=2, layers=7, global_head_dim=96, num_kv_shared_layers=3,
                         hidden_size_per_layer_input=24, vocab_size_per_layer_input=VOCABULARY, sliding_window=WINDOW,
                         use_double_wide_mlp=True, final_logit_softcapping=5.0, hidden_activation="gelu_pytorch_tanh",
                         layer_types=["sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
                                      "full_attention", "sliding_attention", "full_attention"]),
    "gemma4": dict(
        image_token_id=VOCABULARY - 1, video_token_id=VOCABULARY - 2, audio_token_id=VOCABULARY - 3,
        boi_token_id=VOCABULARY - 4, eoi_token_id=VOCABULARY - 4, boa_token_id=VOCABULARY - 4,
        eoa_token_index=VOCABULARY - 4, tie_word_embeddings=True,
        text_config=sizes(head=48, heads=6, kv=3, layers=6, global_head_dim=80, num_global_key_value_heads=2,
                          attention_k_eq_v=True, hidden_size_per_layer_input=0, sliding_window=WINDOW,
                          enable_moe_block=True, num_experts=7, top_k_experts=3, moe_intermediate_size=40,
                          vocab_size=VOCABULARY, model_type="gemma4_text", use_bidirectional_attention="vision",
                          rope_parameters=dict(
                              sliding_attention=dict(rope_type="default", rope_theta=10000.0),
                              full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5,
                                                  rope_theta=1e6))),
        vision_config=None, audio_config=None,
    ),
    "gemma3n_text": sizes(head=64, heads=4, kv=2, layers=7, hidden=104, num_kv_shared_layers=3, altup_num_inputs=3,
                          altup_active_idx=1, hidden_size_per_layer_input=24, vocab_size_per_layer_input=200,
                          laurel_rank=11, sliding_window=WINDOW, final_logit_softcapping=5.0, pad_token_id=0,
                          max_position_embeddings=STATE_POSITIONS,
                          intermediate_size=[416, 75, 112, 88, 112, 416, 112],
                          activation_sparsity_pattern=[0.95, 0.6, 0.3, 0.0, 0.0, 0.95, 0.0],
                          hidden_activation="gelu_pytorch_tanh",
                          layer_types=["sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
                                       "full_attention", "sliding_attention", "full_attention"]),
    "gemma3n": dict(
        image_token_id=VOCABULARY - 1, audio_token_id=VOCABULARY - 2, boi_token_id=VOCABULARY - 3,
        eoi_token_id=VOCABULARY - 4, boa_token_id=VOCABULARY - 5, eoa_token_id=VOCABULARY - 6, tie_word_embeddings=True,
        text_config=sizes(head=48, heads=6, kv=3, layers=11, num_kv_shared_layers=5, hidden_size_per_layer_input=16,
                          intermediate_size=416,
                          vocab_size=VOCABULARY, vocab_size_per_layer_input=VOCABULARY + 6, laurel_rank=16,
                          altup_correct_scale=False, sliding_window=WINDOW, model_type="gemma3n_text",
                          max_position_embeddings=STATE_POSITIONS, query_pre_attn_scalar=48, altup_lr_multiplier=1.0,
                          altup_coef_clip=120.0, rope_theta=1e6, rope_local_base_freq=20000.0, rope_scaling=None,
                          hidden_activation="gelu_pytorch_tanh", pad_token_id=0),
        vision_config=dict(model_type="gemma3n_vision", architecture="mobilenetv3_small_050", hidden_size=32),
        audio_config=dict(model_type="gemma3n_audio", hidden_size=32, conf_num_attention_heads=2,
                          conf_num_hidden_layers=1, sscp_conv_channel_size=[4, 4], input_feat_size=16),
    ),
    "phi": square(heads=3, head=80, kv=3, partial_rotary_factor=0.4, hidden_act="gelu_new"),
    "phi-norm": square(heads=4, head=64, kv=2, partial_rotary_factor=0.5, qk_layernorm=True),
    "phi3": square(heads=4, head=96, kv=2, sliding_window=WINDOW, pad_token_id=0),
    "phi3-longrope": square(heads=4, head=64, kv=2, partial_rotary_factor=0.75, pad_token_id=0,
                            original_max_position_embeddings=POSITIONS, max_position_embeddings=4 * POSITIONS,
                            rope_scaling=longrope(24)),
    "olmo": square(heads=4, head=64, kv=4, clip_qkv=0.7),
    "olmo2": square(heads=4, head=64, kv=2, rope_theta=500000.0),
    "olmo3": square(heads=4, head=64, kv=2, layers=5, sliding_window=WINDOW,
                    rope_scaling=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=32,
                                      beta_fast=32, beta_slow=1, attention_factor=1.2079441541679836)),
    "olmoe": square(heads=4, head=64, kv=2, num_experts=7, num_experts_per_tok=3, clip_qkv=1.5),
    "smollm3": square(heads=4, head=64, kv=1, layers=5, no_rope_layers=[1, 1, 1, 0, 1], pad_token_id=0,
                      rope_theta=5e6),
    "starcoder2": square(heads=6, head=64, kv=2, sliding_window=WINDOW, use_bias=True, norm_epsilon=1e-5),
    "granite": square(heads=4, head=64, kv=2, embedding_multiplier=6.0, residual_multiplier=0.22,
                      attention_multiplier=0.04, logits_scaling=2.0),
    "iquestcoder": sizes(head=64, heads=4, kv=1, rope_theta=500000.0, rms_norm_eps=1e-5, clip_qkv=None,
                         use_sliding_window=False, sliding_window=None, max_window_layers=2),
    "mellum": sizes(head=64, heads=4, kv=2, layers=4, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=40,
                    norm_topk_prob=True, sliding_window=WINDOW, use_sliding_window=True, max_window_layers=0,
                    layer_types=ALTERNATING * 2, mlp_layer_types=["sparse", "dense", "sparse", "sparse"],
                    rope_parameters=dict(
                        full_attention=dict(rope_type="yarn", rope_theta=500000.0, factor=8.0,
                                            original_max_position_embeddings=32, beta_fast=32.0, beta_slow=1.0),
                        sliding_attention=dict(rope_type="default", rope_theta=10000.0))),
    "granitemoehybrid": square(heads=4, head=64, kv=2, num_local_experts=0, num_experts_per_tok=0,
                               shared_intermediate_size=160, position_embedding_type="rope", rope_theta=1e7,
                               layer_types=["attention"] * 2, mamba_n_heads=8, mamba_d_head=64, mamba_d_state=16,
                               normalization_function="rmsnorm", embedding_multiplier=6.0, residual_multiplier=0.22,
                               attention_multiplier=0.04, logits_scaling=2.0),
    "granitemoe": square(heads=4, head=64, kv=2, num_local_experts=6, num_experts_per_tok=2,
                         embedding_multiplier=6.0, residual_multiplier=0.22, attention_multiplier=0.04,
                         logits_scaling=2.0),
    "stablelm": square(heads=4, head=64, kv=2, partial_rotary_factor=0.25, use_qkv_bias=True),
    "stablelm-parallel": square(heads=4, head=80, kv=4, partial_rotary_factor=0.25, use_parallel_residual=True,
                                qk_layernorm=True),
    "gpt2": gpt(heads=3, head=64),
    "gpt2-layer-scale": gpt(heads=2, head=64, scale_attn_by_inverse_layer_idx=True, n_inner=72),
    "gpt_neo": dict(hidden_size=128, num_layers=4, num_heads=2, max_position_embeddings=POSITIONS, window_size=WINDOW,
                    attention_types=[[["global", "local"], 2]]),
    "gpt_neox": dict(hidden_size=192, intermediate_size=160, num_hidden_layers=2, num_attention_heads=3,
                     max_position_embeddings=POSITIONS, rotary_pct=0.25, rotary_emb_base=10000),
    "gpt_neox-sequential": dict(hidden_size=160, intermediate_size=160, num_hidden_layers=2, num_attention_heads=2,
                                max_position_embeddings=POSITIONS, rotary_pct=1.0, use_parallel_residual=False),
    "gptj": gpt(heads=2, head=64, rotary_dim=32),
    "gpt_bigcode": gpt(heads=4, head=64, multi_query=True),
    "gpt_bigcode-multi-head": gpt(heads=3, head=64, multi_query=False),
    "gpt_oss": sizes(head=64, heads=8, kv=1, layers=4, num_local_experts=6, num_experts_per_tok=3,
                     sliding_window=WINDOW, layer_types=ALTERNATING * 2, rope_theta=150000.0,
                     rope_scaling=dict(rope_type="yarn", factor=8.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
                                       original_max_position_embeddings=32)),
    "opt": dict(hidden_size=128, ffn_dim=160, num_hidden_layers=2, num_attention_heads=2, word_embed_proj_dim=128,
                max_position_embeddings=POSITIONS),
    "opt-post-norm": dict(hidden_size=128, ffn_dim=160, num_hidden_layers=2, num_attention_heads=2,
                          word_embed_proj_dim=64, do_layer_norm_before=False, max_position_embeddings=POSITIONS),
    "bloom": dict(hidden_size=192, n_layer=2, n_head=3),
    "falcon": dict(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, multi_query=True, parallel_attn=True,
                   bias=False, alibi=False, new_decoder_architecture=False),
    "falcon-new": dict(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2,
                       new_decoder_architecture=True, bias=False),
    "falcon-alibi": dict(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, multi_query=False, alibi=True,
                         parallel_attn=False, bias=True),
    "mpt": dict(d_model=320, n_layers=2, n_heads=5, max_seq_len=POSITIONS, expansion_ratio=4,
                attn_config=dict(alibi=True, clip_qkv=1.2)),
    "cohere": square(heads=4, head=64, kv=2, logit_scale=0.25, use_qk_norm=True),
    "cohere-plain": square(heads=4, head=64, kv=4, logit_scale=0.5),
    "cohere2": sizes(head=128, heads=2, kv=1, hidden=256, layers=5, sliding_window=WINDOW, sliding_window_pattern=4,
                     logit_scale=0.25),
    "glm": sizes(head=128, heads=4, kv=2, partial_rotary_factor=0.5, pad_token_id=0, attention_bias=True),
    "glm4": sizes(head=64, heads=4, kv=2, partial_rotary_factor=0.5, pad_token_id=0, attention_bias=True),
    "nemotron": sizes(head=96, heads=4, kv=2, partial_rotary_factor=0.5, norm_eps=1e-5),
    "exaone4": sizes(head=64, heads=4, kv=2, layers=5, sliding_window=WINDOW, sliding_window_pattern="LLLG",
                     layer_types=["sliding_attention"] * 3 + ["full_attention", "sliding_attention"]),
    "exaone4-plain": sizes(head=64, heads=4, kv=2, sliding_window=None, sliding_window_pattern=None,
                           layer_types=["full_attention"] * 2, rope_scaling=LLAMA3),
    "seed_oss": sizes(head=128, heads=4, kv=1, attention_bias=True, attention_out_bias=False, pad_token_id=0),
    "apertus": square(heads=4, head=64, kv=2, rope_theta=12e6, rope_scaling=LLAMA3, pad_token_id=3),
    "arcee": sizes(head=80, heads=4, kv=2, rope_scaling=YARN),
    "ernie4_5": sizes(head=128, heads=4, kv=1, use_bias=False, rope_theta=500000.0),
    "hunyuan_v1_dense": sizes(head=128, heads=4, kv=2, use_qk_norm=True,
                              rope_scaling=dict(type="dynamic", alpha=1000.0, factor=1.0, beta_fast=32, beta_slow=1,
                                                mscale=1.0, mscale_all_dim=1.0)),
    "helium": sizes(head=128, heads=2, kv=2, hidden=256),
    "lfm2": square(heads=4, head=24, kv=2, layers=5, conv_L_cache=3, block_ff_dim=150, block_multiple_of=16,
                   block_auto_adjust_ff_dim=True, block_ffn_dim_multiplier=1.1, rope_theta=1e6, norm_eps=1e-5,
                   full_attn_idxs=[1, 4], conv_bias=False, tie_embedding=True),
    "lfm2-bias": square(heads=6, head=16, kv=3, layers=4, conv_L_cache=5, block_auto_adjust_ff_dim=False,
                        layer_types=["conv", "full_attention", "conv", "conv"], conv_bias=True,
                        rope_parameters=dict(rope_type="default", rope_theta=20000.0), tie_word_embeddings=False),
    "lfm2_moe": square(heads=4, head=24, kv=2, layers=5, conv_L_cache=3, num_dense_layers=1, num_experts=7,
                       num_experts_per_tok=3, moe_intermediate_size=40, norm_topk_prob=True, use_expert_bias=True,
                       layer_types=["conv", "conv", "full_attention", "conv", "conv"], rope_theta=1e6, norm_eps=1e-5,
                       conv_bias=False, tie_embedding=True, routed_scaling_factor=1.5),
    "qwen3_next": linear(head=32, heads=6, kv=2, layers=5, key_heads=2, value_heads=6, key=24, value=20,
                         full_attention_interval=3, rope_theta=1e6, rope_scaling=None, use_sliding_window=False, **EXPERTS,
                         decoder_sparse_step=1, mlp_only_layers=[1], norm_topk_prob=True),
    "qwen3_next-types": linear(head=40, heads=3, kv=1, layers=3, hidden=72, key_heads=3, value_heads=3, key=64, value=80,
                               layer_types=["linear_attention", "full_attention", "linear_attention"], **EXPERTS,
                               linear_conv_kernel_dim=3, partial_rotary_factor=0.5, attention_bias=True,
                               norm_topk_prob=False, tie_word_embeddings=True),
    "qwen3_5_text": linear(head=64, heads=4, kv=2, layers=4, key_heads=4, value_heads=8, key=32, value=32,
                           full_attention_interval=4, rope_parameters=IMAGE_POSITIONS, attn_output_gate=True,
                           mamba_ssm_dtype="float32", mtp_num_hidden_layers=1, mtp_use_dedicated_embeddings=False,
                           mlp_only_layers=[], tie_word_embeddings=True),
    "qwen3_5": dict(
        image_token_id=VOCABULARY - 1, video_token_id=VOCABULARY - 2, vision_start_token_id=VOCABULARY - 3,
        vision_end_token_id=VOCABULARY - 4, tie_word_embeddings=False,
        text_config=linear(head=48, heads=2, kv=1, layers=3, hidden=80, key_heads=1, value_heads=5, key=17, value=23,
                           layer_types=["linear_attention", "linear_attention", "full_attention"],
                           rope_parameters=IMAGE_POSITIONS, vocab_size=VOCABULARY, model_type="qwen3_5_text"),
        vision_config=VISION | dict(model_type="qwen3_5_vision"),
    ),
    "qwen3_5_moe_text": linear(head=64, heads=4, kv=1, layers=4, key_heads=2, value_heads=4, key=16, value=32,
                               rope_parameters=IMAGE_POSITIONS, **EXPERTS),
    "qwen3_5_moe": dict(
        image_token_id=VOCABULARY - 1, video_token_id=VOCABULARY - 2, vision_start_token_id=VOCABULARY - 3,
        vision_end_token_id=VOCABULARY - 4, tie_word_embeddings=True,
        text_config=linear(head=32, heads=4, kv=2, layers=2, key_heads=2, value_heads=2, key=32, value=16,
                           full_attention_interval=2, rope_parameters=IMAGE_POSITIONS, vocab_size=VOCABULARY,
                           model_type="qwen3_5_moe_text", tie_word_embeddings=True, **EXPERTS),
        vision_config=VISION | dict(model_type="qwen3_5_moe_vision"),
    ),
    "olmo_hybrid": square(heads=4, head=24, kv=4, layers=5, linear_conv_kernel_dim=4, linear_allow_neg_eigval=True,
                          linear_num_key_heads=3, linear_num_value_heads=6, linear_key_head_dim=20,
                          linear_value_head_dim=28, attention_bias=False, pad_token_id=0,
                          rope_parameters=dict(rope_theta=None, rope_type="default"),
                          linear_a_log_min=0.0, linear_a_log_max=16.0, linear_dt_min=0.001, linear_dt_max=0.1,
                          layer_types=["linear_attention", "full_attention"] * 2 + ["linear_attention"]),
    "olmo_hybrid-rotary": square(heads=2, head=32, kv=1, layers=4, linear_allow_neg_eigval=False, pad_token_id=0,
                                 rope_parameters=dict(rope_type="default", rope_theta=5e5), attention_bias=True),
    "bamba": square(heads=4, head=24, kv=2, layers=4, attn_layer_indices=[2], mamba_n_heads=6, mamba_n_groups=2,
                    mamba_d_state=20, mamba_d_conv=4, mamba_d_head=32, rope_theta=20000.0, rms_norm_eps=1e-5),
    "bamba-bias": square(heads=6, head=16, kv=6, layers=3, attn_layer_indices=[1], mamba_n_heads=16, mamba_n_groups=1,
                         mamba_d_state=13, mamba_d_conv=3, mamba_d_head="auto", mamba_conv_bias=False,
                         mamba_proj_bias=True, attention_bias=True, mlp_bias=True, time_step_limit=[0.4, 0.9]),
    "granitemoehybrid-mamba": square(heads=4, head=24, kv=2, layers=4, num_local_experts=0, num_experts_per_tok=0,
                                     shared_intermediate_size=104, position_embedding_type="nope",
                                     layer_types=["mamba", "mamba", "attention", "mamba"], mamba_n_heads=12,
                                     mamba_n_groups=1, mamba_d_head=16, mamba_d_state=24, embedding_multiplier=6.0,
                                     residual_multiplier=0.22, attention_multiplier=0.04, logits_scaling=2.0),
    "granitemoehybrid-experts": square(heads=4, head=24, kv=2, layers=3, num_local_experts=5, num_experts_per_tok=2,
                                       intermediate_size=40, shared_intermediate_size=56,
                                       position_embedding_type="rope", mamba_expand=3, mamba_conv_bias=False,
                                       layer_types=["mamba", "attention", "mamba"], mamba_n_heads=9, mamba_n_groups=3,
                                       mamba_d_head=32, mamba_d_state=16, residual_multiplier=0.5),
    "deepseek_v2": latent(head=(48, 16, 32), q_lora_rank=None, n_routed_experts=7, num_experts_per_tok=3, n_shared_experts=2,
                          moe_intermediate_size=40, first_k_dense_replace=1, routed_scaling_factor=1.0,
                          topk_method="greedy", n_group=1, topk_group=1, norm_topk_prob=False,
                          rope_scaling=YARN | dict(mscale=0.707, mscale_all_dim=0.707)),
    "deepseek_v2-groups": latent(head=(40, 16, 24), q_lora_rank=48, n_routed_experts=12, num_experts_per_tok=3,
                                 n_shared_experts=1, moe_intermediate_size=40, first_k_dense_replace=0,
                                 routed_scaling_factor=2.5, topk_method="group_limited_greedy", n_group=4,
                                 topk_group=2, norm_topk_prob=False, attention_bias=True),
    "deepseek_v3": latent(q_lora_rank=56, n_routed_experts=12, num_experts_per_tok=4, n_shared_experts=1,
                          moe_intermediate_size=40, first_k_dense_replace=1, routed_scaling_factor=2.5,
                          n_group=4, topk_group=2, norm_topk_prob=True, topk_method="noaux_tc",
                          scoring_func="sigmoid", rope_scaling=YARN | dict(mscale=1.0, mscale_all_dim=1.0)),
    "deepseek_v3-halves": latent(head=(24, 16, 40), q_lora_rank=None, n_routed_experts=9, num_experts_per_tok=2,
                                 n_shared_experts=2, moe_intermediate_size=40, first_k_dense_replace=2, layers=3,
                                 routed_scaling_factor=1.5, n_group=3, topk_group=1, norm_topk_prob=False,
                                 rope_interleave=False, attention_bias=True),
    "minicpm3": latent(hidden=128, head=(32, 16, 32), q_lora_rank=48, scale_emb=6, scale_depth=1.4,
                       dim_model_base=64, rms_norm_eps=1e-5, rope_scaling=longrope(8,
                       original_max_position_embeddings=POSITIONS)),
    "glm4_moe": sizes(head=64, heads=6, kv=2, layers=3, n_routed_experts=7, num_experts_per_tok=3, n_shared_experts=1,
                      moe_intermediate_size=40, first_k_dense_replace=1, routed_scaling_factor=1.5, n_group=1,
                      topk_group=1, norm_topk_prob=True, use_qk_norm=True, attention_bias=True,
                      partial_rotary_factor=0.5, rope_theta=1e6),
    "dots1": sizes(head=48, heads=4, kv=2, layers=3, n_routed_experts=9, num_experts_per_tok=3, n_shared_experts=2,
                   moe_intermediate_size=40, first_k_dense_replace=1, routed_scaling_factor=2.5, n_group=3,
                   topk_group=2, norm_topk_prob=True, scoring_func="noaux_tc", sliding_window=WINDOW,
                   max_window_layers=2),
    "ernie4_5_moe": sizes(head=64, heads=4, kv=1, layers=3, moe_num_experts=7, moe_k=3, moe_intermediate_size=40,
                          moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=2,
                          moe_layer_interval=1, use_bias=False, rope_theta=500000.0, moe_use_aux_free=True,
                          moe_capacity=[7, 7, 7]),
    "mistral3-latent": mistral3() | dict(tie_word_embeddings=True, text_config=latent(
        model_type="mistral4", vocab_size=VOCABULARY, tie_word_embeddings=True, q_lora_rank=48, n_routed_experts=12,
        num_experts_per_tok=3, n_shared_experts=1, moe_intermediate_size=40, first_k_dense_replace=1, routed_scaling_factor=1.5, n_group=4,
        topk_group=2, norm_topk_prob=True, rope_parameters=SCALED_QUERIES)),
    "phimoe": square(heads=4, head=64, kv=2, num_local_experts=7, num_experts_per_tok=2, router_jitter_noise=0.3,
                     attention_bias=True, lm_head_bias=True, rope_theta=10000.0, sliding_window=WINDOW,
                     rms_norm_eps=1e-5),
    "phimoe-longrope": square(heads=4, head=64, kv=2, num_local_experts=5, num_experts_per_tok=2,
                              max_position_embeddings=4 * POSITIONS,
                              rope_scaling=longrope(32, original_max_position_embeddings=POSITIONS,
                                                    short_mscale=1.243, long_mscale=1.25)),
    "minimax_m2": sizes(head=64, heads=6, kv=2, num_local_experts=9, num_experts_per_tok=4, rotary_dim=32,
                        rope_theta=5e6, scoring_func="sigmoid", use_routing_bias=True, shared_intermediate_size=0,
                        qk_norm_type="per_layer", use_qk_norm=True, attn_type_list=[1, 1]),
    "hunyuan_v1_moe": sizes(head=96, heads=4, kv=2, num_experts=7, moe_topk=[3, 3], use_mixed_mlp_moe=True,
                            moe_intermediate_size=[112, 112], num_shared_expert=[1, 1], norm_topk_prob=True,
                            rope_scaling=dict(type="dynamic", alpha=1000.0, factor=1.0, beta_fast=32, beta_slow=1,
                                              mscale=1.0, mscale_all_dim=1.0)),
    "falcon_h1": sizes(head=24, heads=6, kv=2, layers=3, mamba_d_ssm=160, mamba_n_heads=10, mamba_d_head=16,
                       mamba_n_groups=1, mamba_d_state=24, mamba_rms_norm=False, mamba_norm_before_gate=False,
                       attention_in_multiplier=0.75, attention_out_multiplier=0.9375, embedding_multiplier=5.5,
                       key_multiplier=0.39, lm_head_multiplier=0.5, mlp_multipliers=[0.88, 0.58],
                       ssm_in_multiplier=1.25, ssm_multipliers=[0.35, 0.25, 0.17, 0.5, 0.35], ssm_out_multiplier=0.24,
                       rope_theta=1e11, attn_layer_indices=None, mamba_use_mlp=True, mlp_expansion_factor=8),
    "falcon_h1-norm": sizes(head=16, heads=4, kv=4, layers=3, mamba_d_ssm=None, mamba_n_heads=8, mamba_d_head="auto",
                            mamba_n_groups=2, mamba_d_state=18, mamba_rms_norm=True, mamba_norm_before_gate=True,
                            mamba_proj_bias=True, projectors_bias=True, attention_bias=True, mlp_bias=True,
                            ssm_multipliers=[2.0, 1.5, 0.5, 0.8, 1.2], ssm_in_multiplier=0.8, mamba_d_conv=3,
                            mamba_conv_bias=False, tie_word_embeddings=True),
    "nemotron_h": sizes(head=24, heads=4, kv=2, layers=8, hybrid_override_pattern="M-MM*--M", mamba_num_heads=6,
                        mamba_head_dim=20, n_groups=2, ssm_state_size=16, conv_kernel=4, use_bias=False,
                        time_step_limit=[0.0, 0.5], time_step_min=0.45, time_step_max=0.1, mlp_hidden_act="relu2",
                        rms_norm_eps=1e-5, layer_norm_epsilon=1e-5, sliding_window=None),
    "nemotron_h-experts": sizes(head=16, heads=6, kv=3, layers=5, layers_block_type=["mamba", "moe", "attention", "mamba",
                                                                                     "moe"],
                                mamba_num_heads=8, mamba_head_dim=16, n_groups=1, ssm_state_size=24, conv_kernel=3,
                                use_bias=True, use_conv_bias=False, n_routed_experts=9, num_experts_per_tok=3,
                                n_group=3, topk_group=2, moe_intermediate_size=40, norm_topk_prob=True,
                                moe_shared_expert_intermediate_size=56, routed_scaling_factor=2.5),
    "recurrent_gemma": square(heads=4, head=24, kv=1, layers=4, intermediate_size=144, lru_width=80, attention_window_size=40,
                              conv1d_width=4, logits_soft_cap=5.0, block_types=["recurrent", "attention", "recurrent"],
                              rope_theta=10000.0, partial_rotary_factor=0.5, embeddings_scale_by_sqrt_dim=True,
                              hidden_activation="gelu_pytorch_tanh", pad_token_id=0),
    "zamba2": square(heads=4, head=16, kv=4, layers=3, intermediate_size=88, hidden_act="gelu", num_mem_blocks=2,
                     layers_block_type=["hybrid", "hybrid", "hybrid"], adapter_rank=10,
                     use_shared_attention_adapter=True, use_mem_rope=True, rope_theta=20000.0, mamba_d_state=20,
                     n_mamba_heads=8, mamba_ngroups=2, mamba_d_conv=4, time_step_min=0.2, pad_token_id=0),
    "zamba2-bias": square(heads=2, head=24, kv=1, layers=3, intermediate_size=56, hidden_act="silu", num_mem_blocks=1,
                          layers_block_type=["hybrid", "mamba", "hybrid"], adapter_rank=7, add_bias_linear=True,
                          use_shared_attention_adapter=False, use_mem_rope=False, mamba_d_state=13, mamba_expand=3,
                          n_mamba_heads=6, mamba_d_conv=3, pad_token_id=0),
    "kimi_linear": dict(hidden_size=72, num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=4, head_dim=18,
                        intermediate_size=104, model_max_length=STATE_POSITIONS, qk_nope_head_dim=24, qk_rope_head_dim=16,
                        v_head_dim=32, kv_lora_rank=36, q_lora_rank=None, mla_use_nope=True, rope_theta=10000.0,
                        linear_attn_config=dict(full_attn_layers=[2, 4], kda_layers=[1, 3], head_dim=20, num_heads=3,
                                                short_conv_kernel_size=4),
                        num_experts=6, num_experts_per_token=2, num_expert_group=3, topk_group=2, num_shared_experts=1,
                        moe_intermediate_size=40, moe_renormalize=True, routed_scaling_factor=2.446,
                        first_k_dense_replace=1, moe_layer_freq=1, moe_router_activation_func="sigmoid",
                        use_grouped_topk=True, rope_scaling=None, pad_token_id=0),
    "mamba2": dict(hidden_size=72, num_heads=9, head_dim=16, state_size=20, n_groups=3, num_hidden_layers=3,
                   conv_kernel=4, pad_token_id=0),
    "mamba2-bias": dict(hidden_size=48, num_heads=8, head_dim=18, state_size=13, n_groups=1, num_hidden_layers=2, expand=3,
                        conv_kernel=3, use_bias=True, use_conv_bias=False, time_step_limit=[0.4, 0.9],
                        layer_norm_epsilon=1e-3, tie_word_embeddings=True, pad_token_id=0),
    "internlm2": square(heads=4, head=64, kv=2, bias=False, rope_theta=1e6,
                        rope_scaling=dict(type="dynamic", factor=2.0)),
    "minicpm": square(heads=4, head=64, kv=4, scale_emb=12, scale_depth=1.4, dim_model_base=128,
                      tie_word_embeddings=True),
}


def mixed(values):
    """The finalizer of MurmurHash3 on uint32."""
    values = (values ^ (values >> numpy.uint32(16))) * numpy.uint32(0x85EBCA6B)
    values = (values ^ (values >> numpy.uint32(13))) * numpy.uint32(0xC2B2AE35)
    return values ^ (values >> numpy.uint32(16))


#: Families that do not divide scores by the root of the head size, and do not add 1 to the weights of norms.
UNSCALED = ("gemma3n", "gemma4")


def centre_and_amplitude(family, name, shape):
    if name.endswith("weight") and (len(shape) == 1 or "norm" in name):
        adding = family.startswith(("gemma", "recurrent_gemma", "qwen3_next", "qwen3_5")) and not family.startswith(UNSCALED) or family == "nemotron"
        adds_one = adding and "linear_attn" not in name
        if family.startswith(UNSCALED) and "q_norm" in name:
            return 0.0, 0.25
        return (0.0 if adds_one else 1.0), 0.25
    if name.endswith(("layer_scalar", "router.scale", "per_expert_scale", "correct_output_scale")):
        return 1.0, 0.25
    if "modality_router" in name:  # What it reads is divided by its width.
        return 0.0, math.sqrt(shape[-1])
    if name.endswith("A_log"):  # States that last for one to fifty positions.
        return -2.0, 2.0
    if len(shape) < 2 or name.endswith("bias"):
        return 0.0, 0.2
    if any(part in name for part in ("embed", "wte", "wpe")):
        return 0.0, 0.25
    # GPT-Neo does not divide scores by the root of the head size, so its queries are small. Zamba 2 normalizes the
    # results of attention, and their rounding. Gemma 3n's predictions make that of all layers larger.
    is_small = "attention.q_proj" in name or name.endswith((".linear.weight", "prediction_coefs.weight"))
    return 0.0, (0.25 if is_small else 2) / math.sqrt(shape[-1])


def weights(family, name, shape):
    seed = numpy.uint32(0x811C9DC5)
    with numpy.errstate(over="ignore"):
        for byte in name.encode():
            seed = (seed ^ numpy.uint32(byte)) * numpy.uint32(0x01000193)
        count = math.prod(shape)
        bits = mixed(mixed(numpy.arange(count, dtype=numpy.uint32)) ^ seed)
    if name.endswith((".beta", ".eps")):  # Constants of xIELU, equal in all published checkpoints.
        return numpy.full(shape, 0.5 if name.endswith(".beta") else -1e-6, dtype=numpy.float32)
    centre, amplitude = centre_and_amplitude(family, name, shape)
    unit = (bits >> numpy.uint32(8)).astype(numpy.float64) / 2**23 - 1
    return (centre + amplitude * unit).astype(numpy.float32).reshape(shape)


def longest(name):
    return LONGEST_WITH_STATES if name.split("-")[0] in LONGER else LONGEST


def prompt(length):
    return [(37 * i + i * i % 17 + 5) % (VOCABULARY - 8) + 4 for i in range(length)]


def config_of(name):
    family = name.split("-")[0]
    fields = dict(model_type=family, vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2)
    if "text_config" in CASES[name]:
        del fields["vocab_size"]
    made = copy.deepcopy(fields | CASES[name])
    if family in LONGER and "max_position_embeddings" in made:
        made["max_position_embeddings"] = STATE_POSITIONS
    return made


def internlm2_tensors(tensors, config):
    """Names of Llama for the tensors of InternLM2, whose queries, keys and values lie together for each KV head."""
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    size = config["hidden_size"] // heads
    names = {"attention.wo": "self_attn.o_proj", "feed_forward.w1": "mlp.gate_proj", "feed_forward.w3": "mlp.up_proj",
             "feed_forward.w2": "mlp.down_proj", "attention_norm": "input_layernorm",
             "ffn_norm": "post_attention_layernorm", "model.tok_embeddings": "model.embed_tokens", "output.": "lm_head."}
    made = {}
    for name, tensor in tensors.items():
        if name.endswith("wqkv.weight"):
            parts = tensor.reshape(kv, heads // kv + 2, size, -1)
            place = name.removesuffix("attention.wqkv.weight") + "self_attn."
            made[place + "q_proj.weight"] = parts[:, :-2].reshape(heads * size, -1)
            made[place + "k_proj.weight"] = parts[:, -2].reshape(kv * size, -1)
            made[place + "v_proj.weight"] = parts[:, -1].reshape(kv * size, -1)
            continue
        for old, new in names.items():
            name = name.replace(old, new)
        made[name] = tensor
    return made


def internlm2_shapes(config):
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    size = hidden // config["num_attention_heads"]
    qkv = (config["num_attention_heads"] + 2 * config["num_key_value_heads"]) * size
    shapes = {"model.tok_embeddings.weight": [VOCABULARY, hidden], "model.norm.weight": [hidden],
              "output.weight": [VOCABULARY, hidden]}
    for layer in range(config["num_hidden_layers"]):
        place = f"model.layers.{layer}."
        shapes |= {place + "attention.wqkv.weight": [qkv, hidden], place + "attention.wo.weight": [hidden, hidden],
                   place + "feed_forward.w1.weight": [inner, hidden], place + "feed_forward.w3.weight": [inner, hidden],
                   place + "feed_forward.w2.weight": [hidden, inner], place + "attention_norm.weight": [hidden],
                   place + "ffn_norm.weight": [hidden]}
    return shapes


def stand_in(config):
    """A configuration that transformers has, for families whose code is published beside their weights only."""
    if config["model_type"] == "internlm2":
        return config | dict(model_type="llama")
    if config["model_type"] == "minicpm":
        return config | dict(
            model_type="granite", embedding_multiplier=config["scale_emb"],
            residual_multiplier=config["scale_depth"] / math.sqrt(config["num_hidden_layers"]),
            logits_scaling=config["hidden_size"] / config["dim_model_base"],
            attention_multiplier=(config["hidden_size"] // config["num_attention_heads"]) ** -0.5,
        )
    return config


#: Heads that are stored, with other values than the embedding's, although their configurations tie them.
SEPARATE_HEADS = {"mistral3": "language_model.lm_head.weight"}

#: Falcon's eager attention adds ALiBi twice: in the mask and to the scores. Its default attention adds it once.
DEFAULT_ATTENTION = ["falcon-alibi"]


def loaded(directory, config):
    """Writes the weights of a case and returns the model that transformers loads from them."""
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForImageTextToText

    known = stand_in(config)
    attention = "sdpa" if directory.name in DEFAULT_ATTENTION else "eager"
    made = CONFIG_MAPPING[known["model_type"]].from_dict(copy.deepcopy(known))
    model_class = AutoModelForImageTextToText if "text_config" in config else AutoModelForCausalLM
    model = model_class.from_config(made, attn_implementation=attention, dtype=torch.float32).eval()
    reference = directory / "transformers"
    model.save_pretrained(reference)
    stored = reference / "model.safetensors"
    if config["model_type"] == "internlm2":
        shapes = internlm2_shapes(config)
    else:
        shapes = {name: list(tensor.shape) for name, tensor in load_file(stored).items()}
    if directory.name in SEPARATE_HEADS:
        shapes[SEPARATE_HEADS[directory.name]] = [VOCABULARY, config.get("text_config", config)["hidden_size"]]
    tensors = {name: weights(config["model_type"], name, shape) for name, shape in shapes.items()}
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    save_file(internlm2_tensors(tensors, config) if config["model_type"] == "internlm2" else tensors, stored,
              metadata={"format": "pt"})
    (reference / "config.json").write_text(json.dumps(known))
    (directory / "config.json").write_text(json.dumps(config, indent=1))
    model, info = model_class.from_pretrained(
        reference, attn_implementation=attention, dtype=torch.float32, output_loading_info=True)
    problems = {kind: found for kind, found in info.items() if found}
    if problems:
        raise RuntimeError(f"{directory.name}: {problems}")
    return model.eval(), shapes


def write_tokenizer(directory):
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = {f"t{i}": i for i in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="t0"))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="t1", eos_token="t2", unk_token="t0", pad_token="t0"
    ).save_pretrained(directory)


def logits_of(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False).logits[0].float()


def continued(model, length):
    """Greedy tokens, the smallest margin between the best two logits of each, and the logits of the last."""
    tokens, margin = prompt(length), math.inf
    for _ in range(NEW_TOKENS):
        last = logits_of(model, tokens)[-1]
        best = torch.topk(last, 2)
        margin = min(margin, float(best.values[0] - best.values[1]))
        tokens.append(int(best.indices[0]))
    return dict(length=length, tokens=tokens[length:], margin=margin)


def base64_of(values):
    return base64.b64encode(values.numpy().astype("<f4").tobytes()).decode()


def all_fields(config):
    """The configuration as transformers writes it, with every field of its class; None for a family without a class."""
    from transformers import CONFIG_MAPPING

    if config["model_type"] not in CONFIG_MAPPING:
        return None
    made = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
    return json.loads(made.to_json_string(use_diff=False))


def write_case(name, output):
    directory = output / name
    stored = directory / "case.json"
    if stored.exists():
        return json.loads(stored.read_text())
    directory.mkdir(parents=True, exist_ok=True)
    config = config_of(name)
    model, shapes = loaded(directory, config)
    write_tokenizer(directory)
    whole = logits_of(model, prompt(longest(name)))
    (directory / "logits.bin").write_bytes(whole.numpy().astype("<f4").tobytes())
    lengths = sorted({*PROMPTS, longest(name)})
    reference = dict(prompt=prompt(longest(name)), continuations=[continued(model, length) for length in lengths])
    (directory / "reference.json").write_text(json.dumps(reference))
    deviation = float(whole.std())
    margins = [round(one["margin"], 4) for one in reference["continuations"]]
    print(f"{name}: logits of deviation {deviation:.2f}, margins {margins}", flush=True)
    rows = [dict(position=position, logits=base64_of(whole[position])) for position in STORED]
    case = dict(name=name, config=config, tensors=shapes, continuations=reference["continuations"][:len(PROMPTS)], rows=rows)
    stored.write_text(json.dumps(case))
    return case


def grouped(tensors):
    """Names that differ in one number, and have one shape, as one name: `layers.{0,1}.norm`."""
    groups = {}
    for name, shape in tensors.items():
        number = re.search(r"\.(\d+)\.", name)
        parts = (name, "") if number is None else (name[:number.start(1)], name[number.end(1):])
        groups.setdefault((parts, str(shape)), []).append((number and number[1], shape))
    return {
        before if numbers[0][0] is None else f"{before}{{{','.join(number for number, _ in numbers)}}}{after}": numbers[0][1]
        for ((before, after), _), numbers in groups.items()
    }


def fixture(case):
    """A case as the tests read it, without the many tensors of a vision tower."""
    tensors = {name: shape for name, shape in case["tensors"].items() if ".timm_model." not in name}
    while (fewer := grouped(tensors)) != tensors:
        tensors = fewer
    continuations = [dict(length=one["length"], tokens=one["tokens"]) for one in case["continuations"]]
    *first, last = case["rows"]
    few = [row | dict(logits=base64.b64encode(base64.b64decode(row["logits"])[:4 * FEW_LOGITS]).decode()) for row in first]
    return case | dict(tensors=tensors, continuations=continuations, rows=[*few, last], fields=all_fields(case["config"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--fixtures", type=Path)
    parser.add_argument("--case", action="append", choices=CASES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    cases = [write_case(name, arguments.output) for name in arguments.case or CASES]
    if arguments.fixtures:
        lines = [dict(prompt=prompt(LONGEST)), *map(fixture, cases)]
        arguments.fixtures.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


if __name__ == "__main__":
    main()
