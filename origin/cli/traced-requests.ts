import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { LineDecoder } from '@continuo/shared/framing.ts';
import { failure } from './api.ts';
import type { Trace } from './load.ts';

/** Sends requests whose answer is a stream of lines, and records when the lines arrive. */

/** What one line of an answer tells. */
export interface SeenLine {
  /** Whether it carries text or tokens. */
  readonly text?: boolean;
  /** Tokens generated so far. */
  readonly generated?: number;
  /** Tokens of the whole answer. */
  readonly tokens?: number;
  readonly error?: string;
}

export interface TracedRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly read: (line: string) => SeenLine;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Posts to one URL and keeps connections open. `post` never throws: a failure is in the trace.
 * @param now milliseconds, monotonic
 */
export function tracedRequests(url: URL, now: () => number) {
  const [Agent, request] =
    url.protocol === 'https:' ? ([HttpsAgent, httpsRequest] as const) : ([HttpAgent, httpRequest] as const);
  const agent = new Agent({ keepAlive: true, maxSockets: 1024 });
  const post = ({ headers, body, read, signal }: TracedRequest): Promise<Trace> => {
    const sent = now();
    return new Promise((resolve) => {
      const broken = ({ message, code }: NodeJS.ErrnoException) =>
        resolve({ sent, events: [], ended: now(), tokens: 0, status: 0, error: message || `${code}` });
      const options = { method: 'POST', agent, headers, ...(signal && { signal }) };
      request(url, options, (response) => resolve(traceOf(response, sent, read, now)))
        .on('error', broken)
        .end(body);
    });
  };
  return { post, close: () => agent.destroy() };
}

async function traceOf(
  response: IncomingMessage,
  sent: number,
  read: TracedRequest['read'],
  now: () => number,
): Promise<Trace> {
  const { statusCode: status = 0 } = response;
  const events: number[] = [];
  const generated: number[] = [];
  const refusal: string[] = [];
  let tokens = 0;
  let error: string | null = null;
  const take = (line: string, at: number): void => {
    const seen = read(line);
    if (seen.text) events.push(at);
    if (seen.generated !== undefined) generated.push(seen.generated);
    tokens = seen.tokens ?? tokens;
    error = seen.error ?? error;
  };
  const lines = new LineDecoder();
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const at = now();
    if (status !== 200) refusal.push(chunk);
    else for (const line of lines.push(chunk)) if (line !== '') take(line, at);
  });
  const fault = await new Promise<Error | null>((resolve) => {
    response.on('end', () => resolve(null)).on('error', resolve);
  });
  const times = { sent, events, ended: now(), tokens };
  const counts = generated.length === events.length ? { generated } : {};
  if (fault !== null) return { ...times, ...counts, status: 0, error: fault.message };
  return { ...times, ...counts, status, error: status === 200 ? error : messageOf(refusal.join('')) };
}

/** Returns the message of an error answer; null if it has none. */
function messageOf(body: string): string | null {
  try {
    return failure.parse(JSON.parse(body)).error.message;
  } catch {
    return null;
  }
}

const COUNT = '"completion_tokens":';

/**
 * Reads OpenAI's SSE chunks. The token count comes with each chunk if the server supports
 * `continuous_usage_stats`, otherwise with the last. Chunks are searched and not parsed, because the client
 * shares the CPU with the server.
 */
export function readSse(line: string): SeenLine {
  if (!line.startsWith('data: {')) return {};
  if (line.includes('"text":"')) {
    if (line.includes('"usage":null')) return { text: true };
    // Generated text cannot contain this, because its quotation marks are escaped.
    const count = line.lastIndexOf(COUNT);
    if (count > 0) {
      const tokens = Number.parseInt(line.slice(count + COUNT.length), 10);
      return { text: true, generated: tokens, tokens };
    }
  }
  const chunk = JSON.parse(line.slice(6)) as {
    choices?: readonly unknown[];
    usage?: { completion_tokens: number } | null;
    error?: { code?: string; message: string };
  };
  if (chunk.error) return { error: chunk.error.code ?? chunk.error.message };
  const text = (chunk.choices?.length ?? 0) > 0;
  return chunk.usage ? { tokens: chunk.usage.completion_tokens, text } : { text };
}
