import type { AnswerForm } from '../../shared/answer/answer-form.ts';
import type { GenerationRequest } from '../../shared/generation.ts';

/** How the answer is to look. */
export interface AnswerOptions extends AnswerForm {
  /** The model's name as the caller wrote it. */
  readonly model: string;
  readonly stream: boolean;
  /** Choices per prompt in the answer. */
  readonly n: number;
  /** Rank the generated candidates by mean logprob and keep the best n. */
  readonly rank: boolean;
}

/** The part of a GenerationRequest that the body decides; caller, model and deadline are added later. */
export type GenerationFields = Omit<
  GenerationRequest,
  'version' | 'requestId' | 'account' | 'tenantId' | 'weight' | 'model' | 'deadlineMs' | 'written'
>;

/** A request body understood. */
export interface CompletionCall {
  readonly answer: AnswerOptions;
  readonly generation: GenerationFields;
  /** The field of the constraint, for the errors of its compilation. */
  readonly constraintField: string | null;
  /** The field `user`; null = absent. */
  readonly endUser: string | null;
  /** The only prompt is in a list, so error messages need two indices for its tokens. */
  readonly promptIsListed: boolean;
  /**
   * Fields that OpenAI-compatible upstreams get unchanged: unknown fields without service fields, sampling fields, and the
   * constraint.
   */
  readonly extra: Readonly<Record<string, unknown>>;
}
