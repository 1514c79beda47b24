import { words } from '@continuo/shared/field-names.ts';

/** Fields of config.json that no logit depends on, in any family. */
export const NEUTRAL_FIELDS = words(`
  architectures model_type torch_dtype dtype transformers_version _name_or_path bos_token_id eos_token_id
  pad_token_id sep_token_id decoder_start_token_id use_cache initializer_range pretraining_tp auto_map
  _attn_implementation attention_dropout attn_pdrop embd_pdrop resid_pdrop dropout layerdrop hidden_dropout
  attention_probs_dropout_prob hidden_dropout_prob classifier_dropout output_hidden_states output_attentions
  return_dict problem_type id2label label2id chunk_size_feed_forward is_decoder task_specific_params
  gradient_checkpointing _attn_implementation_autoset _attn_implementation_internal _commit_hash
  _experts_implementation unsloth_version unsloth_fixed _unsloth_fix model_name name_or_path
  quantization_config
`);
