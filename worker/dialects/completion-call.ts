import type { GenerationRequest } from '../../shared/generation.ts';

/** The form of the answer. */
export interface AnswerOptions {
  /** Put the prompt's text before the completion. */
  readonly echo: boolean;
  /** Echo only the last k prompt tokens; null = all. */
  readonly echoLast: number | null;
  /** Top logprobs per token; null = no `logprobs` object. */
  readonly logprobs: number | null;
  /** Name tokens `token_id:N` instead of by their text. */
  readonly tokensAsIds: boolean;
  readonly tokenIds: boolean;
  /** Top logprobs in `prompt_logprobs`; null = absent. */
  readonly promptLogprobs: number | null;
  readonly timings: boolean;
  /** Usage in a stream: none, a final chunk, also in every chunk, or on the last choice's last chunk. */
  readonly streamUsage: 'none' | 'final' | 'continuous' | 'last-choice';
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
  'version' | 'requestId' | 'account' | 'tenantId' | 'weight' | 'model' | 'deadlineMs'
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
