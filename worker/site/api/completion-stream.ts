import { SseDecoder } from '@continuo/shared/framing.ts';
import { type Connection, noResponse, send } from './client.ts';
import { errorOf, RequestFailure, streamFailure } from './request-failure.ts';

/** Another token that the model could have chosen. */
export interface Alternative {
  /** As the API names it; see token-bytes.ts. */
  readonly name: string;
  readonly logprob: number;
  /** Null if it is not known. */
  readonly id: number | null;
}

/** One token with its probability. */
export interface Token extends Alternative {
  /** Best first; includes the token itself. */
  readonly alternatives: readonly Alternative[];
}

/** A token of the prompt. The first one has no probability. */
export type PromptToken = Omit<Token, 'logprob'> & { readonly logprob: number | null };

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
}

/** Request limits that the response reports; null = no such limit. */
export interface RemainingLimits {
  readonly requests: { readonly left: number; readonly of: number } | null;
  readonly tokens: { readonly left: number; readonly of: number } | null;
}

/** What one event of a stream adds. */
export type StreamUpdate =
  | { readonly type: 'start'; readonly limits: RemainingLimits; readonly requestId: string | null }
  | {
      readonly type: 'choice';
      readonly index: number;
      readonly text: string;
      /** Empty if the request asks for no logprobs. */
      readonly tokens: readonly PromptToken[];
      /** Start of each token in code points from the start of the choice's text. */
      readonly offsets: readonly number[];
      /** Ids of the prompt, in the first update of a choice. */
      readonly promptIds: readonly number[] | null;
      /** Null until the choice ends. */
      readonly finishReason: string | null;
      readonly stopReason: string | number | null;
    }
  | { readonly type: 'usage'; readonly usage: Usage }
  /** Before the first choice. */
  | { readonly type: 'identity'; readonly id: string; readonly fingerprint: string | null };

interface Chunk {
  readonly id?: string;
  readonly system_fingerprint?: string | null;
  readonly choices: readonly {
    readonly index: number;
    readonly text: string;
    readonly logprobs: (Logprobs & { readonly text_offset: readonly number[] }) | null;
    readonly token_ids?: readonly number[];
    readonly prompt_token_ids?: readonly number[];
    readonly finish_reason: string | null;
    readonly stop_reason?: string | number | null;
  }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details?: { readonly cached_tokens: number };
  } | null;
}

/** The `logprobs` object of legacy completions. */
export interface Logprobs {
  readonly tokens: readonly string[];
  readonly token_logprobs: readonly (number | null)[];
  readonly top_logprobs: readonly (Readonly<Record<string, number>> | null)[];
  readonly top_token_ids?: readonly (Readonly<Record<string, number>> | null)[] | undefined;
}

/** Returns the tokens of a `logprobs` object. Sorts alternatives, as objects reorder numbers. */
export function tokensOf(
  { tokens, token_logprobs, top_logprobs, top_token_ids }: Logprobs,
  ids: readonly number[] = [],
): PromptToken[] {
  return tokens.map((name, index) => ({
    name,
    logprob: token_logprobs[index] ?? null,
    id: ids[index] ?? null,
    alternatives: Object.entries(top_logprobs[index] ?? {})
      .map(([alternative, logprob]) => ({
        name: alternative,
        logprob,
        id: top_token_ids?.[index]?.[alternative] ?? null,
      }))
      // Another token of the list has the same text.
      .filter((alternative) => alternative.name !== `token_id:${alternative.id}`)
      .sort((a, b) => b.logprob - a.logprob),
  }));
}

function* updatesOf({ choices, usage }: Chunk): Generator<StreamUpdate> {
  for (const choice of choices) {
    // With echo, the first update has the tokens of the prompt.
    const ids = choice.token_ids ?? (choice.logprobs ? choice.prompt_token_ids : undefined);
    yield {
      type: 'choice',
      index: choice.index,
      text: choice.text,
      tokens: choice.logprobs ? tokensOf(choice.logprobs, ids) : [],
      offsets: choice.logprobs?.text_offset ?? [],
      promptIds: choice.prompt_token_ids ?? null,
      finishReason: choice.finish_reason,
      stopReason: choice.stop_reason ?? null,
    };
  }
  if (usage) {
    yield {
      type: 'usage',
      usage: {
        promptTokens: usage.prompt_tokens,
        completionTokens: usage.completion_tokens,
        cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
      },
    };
  }
}

export function limitsOf(headers: Headers): RemainingLimits {
  const read = (unit: string) => {
    const [left, of] = ['remaining', 'limit'].map((part) => headers.get(`x-ratelimit-${part}-${unit}`));
    return left == null || of == null ? null : { left: Number(left), of: Number(of) };
  };
  return { requests: read('requests'), tokens: read('tokens') };
}

/** Returns the body of a request for a stream. */
export const streamedBody = (body: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  ...body,
  stream: true,
  stream_options: { include_usage: true },
});

/**
 * Sends a completion request as a stream and yields what arrives.
 * @param body request fields; those of a stream are added
 * @throws RequestFailure, also for an error event and for a stream that ends early; the signal's reason if it
 *   is aborted
 */
export async function* streamCompletion(
  connection: Connection,
  body: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): AsyncGenerator<StreamUpdate> {
  const response = await send(connection, '/v1/completions', { body: streamedBody(body), signal });
  const requestId = response.headers.get('x-request-id');
  yield { type: 'start', limits: limitsOf(response.headers), requestId };
  const decoder = new TextDecoder();
  const events = new SseDecoder();
  const reader = response.body!.getReader();
  let isNamed = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      for (const payload of events.push(decoder.decode(value, { stream: true }))) {
        if (payload === '[DONE]') return;
        const chunk: unknown = JSON.parse(payload);
        const error = errorOf(chunk);
        if (error !== null) throw streamFailure(error, requestId);
        const { id, system_fingerprint: fingerprint = null } = chunk as Chunk;
        if (!isNamed && id !== undefined) yield { type: 'identity', id, fingerprint };
        isNamed = true;
        yield* updatesOf(chunk as Chunk);
      }
    }
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof RequestFailure) throw thrown;
    throw navigator.onLine ? cutStream(requestId) : noResponse(thrown);
  } finally {
    void reader.cancel().catch(() => undefined);
  }
  throw cutStream(requestId);
}

const cutStream = (requestId: string | null) =>
  new RequestFailure('cut-stream', 'The connection ended before the completion was complete.', { requestId });
