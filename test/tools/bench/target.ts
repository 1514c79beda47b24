import type { Trace } from '../../../origin/cli/load.ts';
import { readSse, type SeenLine, tracedRequests } from '../../../origin/cli/traced-requests.ts';
import type { GenerationEvent, GenerationRequest, WireConstraint } from '../../../shared/generation.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { importSigningKey, SIGNATURE_HEADER, sign } from '../../../shared/signing.ts';
import { request } from '../../support/generation-request.ts';

const now = () => performance.now();

export type TextBoundaries = Pick<GenerationRequest, 'tokenHealing' | 'stopRegex' | 'bannedPhrases'>;

/** A completion request. Generation never ends early, so that every run does the same work. */
export interface Job {
  readonly prompt: readonly number[] | string;
  readonly maxTokens: number;
  /** The tenant, if the target has tenants. */
  readonly tenant?: string;
  readonly cachePrompt?: boolean;
  readonly constraint?: WireConstraint;
  /** Of the origin's own protocol. */
  readonly boundaries?: TextBoundaries;
  /** Whether the trace of an OpenAI-compatible server has the generated text. */
  readonly keepsText?: boolean;
  /** More fields for an OpenAI-compatible server. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** A server to measure: the origin with its own protocol, or any OpenAI-compatible URL. */
export interface Target {
  readonly name: string;
  run(job: Job, signal?: AbortSignal): Promise<Trace>;
  /** Scores continuations of a prompt in one request. Absent if the target has no endpoint for that. */
  score?(prompt: readonly number[], continuations: readonly (readonly number[])[]): Promise<Trace>;
  close(): void | Promise<void>;
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
  /** Whether each request opens a connection. llama.cpp's server closes reusable connections. */
  readonly reconnects?: boolean;
  /** Whether the server has `/score`. */
  readonly scores?: boolean;
}

export function openAiTarget(name: string, options: OpenAiOptions): Target {
  const requests = tracedRequests(new URL(`${options.baseUrl}/completions`), now);
  const headers = {
    'content-type': 'application/json',
    authorization: `Bearer ${options.apiKey}`,
    ...(options.reconnects && { connection: 'close' }),
  };
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
      const trace = await requests.post({
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
    close: () => requests.close(),
  };
}

function readNdjson(line: string): SeenLine {
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
    ...job.boundaries,
    deadlineMs: 600_000,
  });

export async function originTarget(name: string, options: OriginOptions): Promise<Target> {
  const key = await importSigningKey(options.secret);
  const url = new URL('/generate', options.url);
  const requests = tracedRequests(url, now);
  return {
    name,
    run: async (job, signal) => {
      const body = JSON.stringify(generation(job, options.model));
      const claims = { timestamp: Date.now(), nonce: crypto.randomUUID() };
      const signature = await sign(key, { method: 'POST', path: url.pathname, body }, claims);
      const headers = { 'content-type': 'application/json', [SIGNATURE_HEADER]: signature };
      return requests.post({ signal, read: readNdjson, headers, body });
    },
    close: () => requests.close(),
  };
}
