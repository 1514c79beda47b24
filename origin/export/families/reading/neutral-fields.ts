import { words } from '@continuo/shared/field-names.ts';

/** Fields of config.json that no logit depends on, in any family. */
export const NEUTRAL_FIELDS = words(`
  architectures model_type torch_dtype dtype transformers_version _name_or_path bos_token_id eos_token_id
  pad_token_id sep_token_id unk_token_id decoder_start_token_id use_cache initializer_range pretraining_tp auto_map
  _attn_implementation attention_dropout attn_pdrop embd_pdrop resid_pdrop dropout layerdrop hidden_dropout
  attention_probs_dropout_prob hidden_dropout_prob classifier_dropout output_hidden_states output_attentions
  return_dict problem_type id2label label2id num_labels _num_labels chunk_size_feed_forward is_decoder
  task_specific_params gradient_checkpointing _attn_implementation_autoset _attn_implementation_internal
  attn_implementation _flash_attn_2_enabled use_flash_attention _commit_hash _experts_implementation unsloth_version unsloth_fixed _unsloth_fix model_name
  name_or_path quantization_config tokenizer_class finetuning_task prefix torchscript use_bfloat16 tf_legacy_loss
  output_past transformers.js_config custom_pipelines
  max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k
  top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size
  bad_words_ids num_return_sequences output_scores return_dict_in_generate forced_bos_token_id
  forced_eos_token_id remove_invalid_values exponential_decay_length_penalty suppress_tokens
  begin_suppress_tokens max_new_tokens
`);
