import { vi } from 'vitest';
import type { Connection } from '../../../../worker/site/api/client.ts';

export const CONNECTION: Connection = { key: 'sk-test', dialect: null };

/** What a fake response streams of one choice. */
interface Part {
  readonly index?: number;
  readonly text: string;
  readonly finish_reason?: string;
  /** Each token and its logprob. */
  readonly tokens?: readonly (readonly [name: string, logprob: number | null])[];
  /** Start of the first token in the text of the choice, prompt included. */
  readonly offset?: number;
}

function chunkOf({ index = 0, text, finish_reason, tokens, offset = 0 }: Part): string {
  const names = (tokens ?? []).map(([name]) => name);
  const logprobs = tokens && {
    tokens: names,
    token_logprobs: tokens.map(([, logprob]) => logprob),
    top_logprobs: names.map(() => null),
    text_offset: names.map((_, at) => offset + names.slice(0, at).join('').length),
  };
  const choice = { index, text, logprobs: logprobs ?? null, finish_reason: finish_reason ?? null };
  return `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
}

/** Returns a stream with these parts that ends as the server ends it. */
export const completion = (...parts: readonly Part[]): Response =>
  new Response(`${parts.map(chunkOf).join('')}data: [DONE]\n\n`);

/** Returns a stream that breaks off after these parts. */
export const cutCompletion = (...parts: readonly Part[]): Response =>
  new Response(parts.map(chunkOf).join(''));

/** Returns a stream that goes on after these parts until the request is aborted. */
export function openCompletion(signal: AbortSignal, ...parts: readonly Part[]): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(parts.map(chunkOf).join('')));
      signal.addEventListener('abort', () => controller.error(signal.reason));
    },
  });
  return new Response(body);
}

interface SentRequest {
  readonly body: Readonly<Record<string, unknown>>;
  readonly dialect: string | null;
  readonly signal: AbortSignal;
}

/** Answers the page's requests for completions. Returns the requests so far. */
export function serveCompletions(reply: (request: SentRequest, at: number) => Response): SentRequest[] {
  const sent: SentRequest[] = [];
  vi.stubGlobal('navigator', { onLine: true });
  vi.stubGlobal('fetch', async (_: string, { body, headers, signal }: RequestInit) => {
    const dialect = new Headers(headers).get('x-dialect');
    const request = { body: JSON.parse(String(body)), dialect, signal: signal! };
    return reply(request, sent.push(request) - 1);
  });
  return sent;
}
