import type { AnswerForm } from '../../shared/answer/answer-form.ts';
import type { GenerationRequest } from '../../shared/generation.ts';

/** The form of the response. */
export interface AnswerOptions extends AnswerForm {
  /** The model's name as in the request. */
  readonly model: string;
  readonly stream: boolean;
  /** Number of choices per prompt in the response. */
  readonly n: number;
  /** Ranks the candidates by mean logprob and keeps the best n. */
  readonly rank: boolean;
}

/** The part of a GenerationRequest that comes from the body. Caller, model and deadline are added later. */
export type GenerationFields = Omit<
  GenerationRequest,
  'version' | 'requestId' | 'account' | 'tenantId' | 'weight' | 'model' | 'deadlineMs' | 'written'
>;

/** A parsed completion request. */
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
