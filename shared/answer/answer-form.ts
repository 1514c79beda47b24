import * as z from 'zod';
import { MOST_ALTERNATIVES } from '../logprob.ts';

const alternatives = z.int().min(0).max(MOST_ALTERNATIVES).nullable();

/** What shows in the choices of an answer, and how. */
export const answerForm = z.strictObject({
  /** Put the prompt's text before the completion. */
  echo: z.boolean(),
  /** Only the last k prompt tokens are echoed; null = all. */
  echoLast: z.int().min(0).nullable(),
  /** Alternatives per token; null = no logprobs object. */
  logprobs: alternatives,
  /** Name tokens `token_id:N` instead of by their text. */
  tokensAsIds: z.boolean(),
  tokenIds: z.boolean(),
  /** Alternatives in `prompt_logprobs`; null = absent. */
  promptLogprobs: alternatives,
  timings: z.boolean(),
  /** Usage in a stream: nowhere, in a chunk of its own, in every chunk too, or on the last choice's last chunk. */
  streamUsage: z.enum(['none', 'final', 'continuous', 'last-choice']),
});
export type AnswerForm = z.infer<typeof answerForm>;

const anyAnswer = answerForm.strip();

/** The form of an answer, of whose options there may be more. */
export const answerFormOf = (answer: AnswerForm): AnswerForm => anyAnswer.parse(answer);

/** What all chunks of one answer have in common. */
export const envelope = z.strictObject({
  id: z.string(),
  /** Unix seconds. */
  created: z.int(),
  /** As the caller wrote it. */
  model: z.string(),
  fingerprint: z.string(),
});
export type Envelope = z.infer<typeof envelope>;

/** An error's `code`: our name for it, or the HTTP status as a number. */
export const errorCodeForm = z.enum(['string', 'status']);
export type ErrorCodeForm = z.infer<typeof errorCodeForm>;
