import type * as z from 'zod';
import { completionChunk, type completionResponse } from '../../../shared/completion-response.ts';

export type Chunk = z.infer<typeof completionChunk>;
export type Completion = z.infer<typeof completionResponse>;

/** Returns the blocks of a stream between blank lines, comments included. */
export const blocksOf = (text: string): string[] => text.split('\n\n').filter((block) => block !== '');

/** Returns the JSON payloads of a stream without [DONE]. @throws if it has other lines than data events */
export const nativePayloadsOf = (text: string): unknown[] =>
  blocksOf(text)
    .filter((block) => !block.startsWith(':'))
    .map((block) => {
      if (!/^data: [^\n]+$/.test(block)) throw new Error(`Not a data event: ${block}`);
      return JSON.parse(block.slice('data: '.length)) as unknown;
    });

/**
 * Returns the JSON payloads of a complete stream.
 * @throws if it has other lines, or not exactly one [DONE] at its end
 */
export function payloadsOf(text: string): unknown[] {
  const end = 'data: [DONE]\n\n';
  if (!text.endsWith(end)) throw new Error(`The stream has no end: …${text.slice(-200)}`);
  return nativePayloadsOf(text.slice(0, -end.length));
}

/** Returns the chunks of a stream without an error event. */
export function chunksOf(text: string): Chunk[] {
  return payloadsOf(text).map((payload) => completionChunk.parse(payload));
}

type Choice = Chunk['choices'][number];

/** Adds up a stream's chunks to the choices of a plain answer, independently of the Worker's code. */
export function assemble(chunks: readonly Chunk[]): Choice[] {
  const choices = new Map<number, Choice>();
  for (const { index, text, logprobs, finish_reason, stop_reason } of chunks.flatMap(
    (chunk) => chunk.choices,
  )) {
    const whole = choices.get(index) ?? { index, text: '', logprobs: null, finish_reason: null };
    if (whole.finish_reason !== null) throw new Error(`Choice ${index} went on after its end`);
    choices.set(index, {
      index,
      text: whole.text + text,
      logprobs:
        logprobs === null
          ? whole.logprobs
          : {
              tokens: [...(whole.logprobs?.tokens ?? []), ...logprobs.tokens],
              token_logprobs: [...(whole.logprobs?.token_logprobs ?? []), ...logprobs.token_logprobs],
              top_logprobs: [...(whole.logprobs?.top_logprobs ?? []), ...logprobs.top_logprobs],
              text_offset: [...(whole.logprobs?.text_offset ?? []), ...logprobs.text_offset],
            },
      finish_reason,
      ...(finish_reason === null ? {} : { stop_reason: stop_reason ?? null }),
    });
  }
  return [...choices.values()].toSorted((left, right) => left.index - right.index);
}
