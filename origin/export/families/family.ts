import type { ConfigFields } from './config-fields.ts';
import type { DecoderDesign } from './decoder-design.ts';

/** A row of the table of families. */
export interface Family {
  /** Values of model_type in config.json. */
  readonly modelTypes: readonly string[];
  /**
   * Reads every field that changes logits. Fields that nothing reads are refused afterwards.
   * @param fields of config.json, or of its text_config
   * @param tensors names of the checkpoint's tensors, for what only they show: whether an optional bias exists
   * @throws ModelError that names a field which is missing or has an unsupported value
   */
  readonly design: (fields: ConfigFields, tensors: TensorNames) => DecoderDesign;
  /** Values of model_type of models with images, whose text_config has one of `modelTypes`. */
  readonly within?: readonly string[];
  /** Values of fields that config.json does not have, where a published one may omit them. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Neutral whatever their value, beside those that are for every family. */
  readonly ignored?: readonly string[];
  /**
   * Beginnings that names of tensors may have in place of the first one, which the design uses. Absent = `model.`, nothing,
   * `language_model.model.` and `model.language_model.`.
   */
  readonly prefixes?: readonly string[];
}

/** Reports whether the checkpoint has a tensor, whatever its prefix. */
export interface TensorNames {
  has(name: string): boolean;
}
