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
  /** The field that carries the constraint, for errors found only when it is compiled. */
  readonly constraintField: string | null;
  /** The caller's name for whom it asks; null = none given. */
  readonly endUser: string | null;
  /** The only prompt stands in a list, so that its tokens have two indices. */
  readonly promptIsListed: boolean;
  /**
   * What other servers get as it was sent: fields unknown to us, service fields removed, those of sampling, and the
   * constraint.
   */
  readonly extra: Readonly<Record<string, unknown>>;
}
