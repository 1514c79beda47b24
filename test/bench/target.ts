import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { LineDecoder } from '../../shared/framing.ts';
import type { GenerationEvent, GenerationRequest, WireConstraint } from '../../shared/generation.ts';
import { NEUTRAL_SAMPLING } from '../../shared/sampling.ts';
import { importSigningKey, SIGNATURE_HEADER, sign } from '../../shared/signing.ts';
import { request } from '../support/generation-request.ts';

/** A completion request. Generation never ends early, so that every run does the same work. */
export interface Job {
  readonly prompt: readonly number[] | string;
  readonly maxTokens: number;
  /** The tenant, if the target has tenants. */
  readonly tenant?: string;
  readonly cachePrompt?: boolean;
  readonly constraint?: WireConstraint;
  /** Whether the trace of an OpenAI-compatible server has the generated text. */
  readonly keepsText?: boolean;
  /** More fields for an OpenAI-compatible server. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** Times of one request, in milliseconds of `performance.now()`. */
export interface Trace {
  readonly sent: number;
  /** One entry per event that carried text or tokens. */
  readonly events: readonly number[];
  /** Tokens in each of these events, if the target reports them. */
  readonly generated?: readonly number[];
  readonly ended: number;
  readonly tokens: number;
  /** HTTP status, or 0 when the connection broke; 200 with `error` when the stream ended in an error event. */
  readonly status: number;
  readonly error: string | null;
  readonly text?: string;
}

/** A server to measure: the origin with its own protocol, or any OpenAI-compatible URL. */
export interface Target {
  readonly name: string;
  run(job: Job, signal?: AbortSignal): Promise<Trace>;
  /** Scores continuations of a prompt in one request. Absent if the target has no endpoint for that. */
  score?(prompt: readonly number[], continuations: readonly (readonly number[])[]): Promise<Trace>;
  close(): void | Promise<void>;
}

/** Reads one line of the response body. */
type LineReader = (line: string) => {
  tokens?: number;
  text?: boolean;
  generated?: number;
  error?: string;
};

interface Exchange {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly agent: Agent;
  readonly read: LineReader;
  readonly signal: AbortSignal | undefined;
}

function exchange({ url, headers, body, agent, read, signal }: Exchange): Promise<Trace> {
  const sent = performance.now();
  const events: number[] = [];
  const generated: number[] = [];
  let tokens = 0;
  let error: string | null = null;
  return new Promise((resolve) => {
    const finish = (status: number, failure: string | null) =>
      resolve({
        sent,
        events,
        ...(generated.length === events.length ? { generated } : {}),
        ended: performance.now(),
        tokens,
        status,
        error: failure,
      });
    const consume = (response: IncomingMessage) => {
      const lines = new LineDecoder();
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        const now = performance.now();
        for (const line of lines.push(chunk)) {
          if (line === '') continue;
          const seen = read(line);
          if (seen.text) events.push(now);
          if (seen.generated !== undefined) generated.push(seen.generated);
          tokens = seen.tokens ?? tokens;
          error = seen.error ?? error;
        }
      });
      response.on('end', () => finish(response.statusCode ?? 0, error));
      response.on('error', (cause) => finish(0, cause.message));
    };
    const outgoing = httpRequest(
      url,
      { method: 'POST', agent, headers, ...(signal ? { signal } : {}) },
      consume,
    );
    outgoing.on('error', (cause) => finish(0, cause.message));
    outgoing.end(body);
  });
}

const newAgent = () => new Agent({ keepAlive: true, maxSockets: 1024 });

const COUNT = '"completion_tokens":';

/**
 * Reads OpenAI's SSE chunks. The token count comes with each chunk if the server supports `continuous_usage_stats`,
 * otherwise with the last. Chunks are searched and not parsed, because the client shares the CPU with the server.
 */
function readSse(line: string): ReturnType<LineReader> {
  if (!line.startsWith('data: {')) return {};
  if (line.includes('"text":"')) {
    if (line.includes('"usage":null')) return { text: true };
    // Generated text cannot contain this, because its quotation marks are escaped.
    const count = line.lastIndexOf(COUNT);
    if (count > 0) return { text: true, generated: Number.parseInt(line.slice(count + COUNT.length), 10) };
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

function textOf(line: string): string {
  if (!line.startsWith('data: {')) return '';
  const { choices } = JSON.parse(line.slice(6)) as { choices?: readonly { text?: string }[] };
  return choices?.[0]?.text ?? '';
}

/** The request field of a constraint. */
export function constraintField(constraint?: WireConstraint): Readonly<Record<string, unknown>> {
  switch (constraint?.type) {
    case undefined:
      return {};
    case 'gbnf':
      return { grammar: constraint.value };
    case 'json_schema':
      return { json_schema: constraint.value };
    case 'json_object':
      return { response_format: { type: 'json_object' } };
    case 'choice':
      return { guided_choice: constraint.value };
    default:
      return { grammar: constraint };
  }
}

export interface OpenAiOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
  /** Fields that make generation run to max_tokens. Servers without these fields ignore them. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Whether the server has `/score`. */
  readonly scores?: boolean;
}

export function openAiTarget(name: string, options: OpenAiOptions): Target {
  const agent = newAgent();
  const url = new URL(`${options.baseUrl}/completions`);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${options.apiKey}` };
  const score: Target['score'] = async (prompt, continuations) => {
    const body = JSON.stringify({ model: options.model, prompt, continuations });
    const sent = performance.now();
    const response = await fetch(`${options.baseUrl}/score`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    const ended = performance.now();
    return {
      sent,
      events: [ended],
      ended,
      tokens: continuations.length,
      status: response.status,
      error: null,
    };
  };
  return {
    name,
    ...(options.scores && { score }),
    run: async (job, signal) => {
      let text = '';
      const trace = await exchange({
        url,
        agent,
        signal,
        read: (line) => {
          if (job.keepsText) text += textOf(line);
          return readSse(line);
        },
        headers,
        body: JSON.stringify({
          model: options.model,
          prompt: job.prompt,
          max_tokens: job.maxTokens,
          temperature: 0,
          ignore_eos: true,
          cache_prompt: job.cachePrompt ?? false,
          stream: true,
          stream_options: { include_usage: true, continuous_usage_stats: true },
          ...constraintField(job.constraint),
          ...job.fields,
          ...options.extra,
        }),
      });
      return job.keepsText ? { ...trace, text } : trace;
    },
    close: () => agent.destroy(),
  };
}

function readNdjson(line: string): ReturnType<LineReader> {
  if (line.startsWith('{"type":"token"')) {
    // Generated text cannot contain this, because its quotation marks are escaped.
    const generated = /"completionTokens":(\d+)/.exec(line)?.[1];
    return { text: true, generated: Number(generated) };
  }
  const event = JSON.parse(line) as GenerationEvent;
  if (event.type === 'done') return { tokens: event.usage.completionTokens };
  if (event.type === 'error') return { error: event.code };
  return {};
}

export interface OriginOptions {
  readonly url: string;
  readonly secret: string;
  readonly model: string;
}

const generation = (job: Job, model: string): GenerationRequest =>
  request({
    requestId: crypto.randomUUID(),
    tenantId: job.tenant ?? 'bench',
    model,
    prompts: [typeof job.prompt === 'string' ? job.prompt : [...job.prompt]],
    maxTokens: job.maxTokens,
    ignoreEos: true,
    sampling: { ...NEUTRAL_SAMPLING, temperature: 0 },
    contextOverflow: 'error',
    cachePrompt: job.cachePrompt ?? false,
    constraint: job.constraint ?? null,
    deadlineMs: 600_000,
  });

export async function originTarget(name: string, options: OriginOptions): Promise<Target> {
  const agent = newAgent();
  const key = await importSigningKey(options.secret);
  const url = new URL('/generate', options.url);
  return {
    name,
    run: async (job, signal) => {
      const body = JSON.stringify(generation(job, options.model));
      const claims = { timestamp: Date.now(), nonce: crypto.randomUUID() };
      const signature = await sign(key, { method: 'POST', path: url.pathname, body }, claims);
      const headers = { 'content-type': 'application/json', [SIGNATURE_HEADER]: signature };
      return exchange({ url, agent, signal, read: readNdjson, headers, body });
    },
    close: () => agent.destroy(),
  };
}
