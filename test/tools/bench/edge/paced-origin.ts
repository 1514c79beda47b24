import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as z from 'zod';
import { CAPABILITIES } from '../../../../shared/capabilities.ts';
import { ndjsonLine } from '../../../../shared/framing.ts';
import type { GenerationEvent, generationRequest } from '../../../../shared/generation.ts';
import { importSigningKey, SIGNATURE_HEADER, verify } from '../../../../shared/signing.ts';
import { KEPT_CONNECTIONS } from '../../../support/local-server.ts';
import { now, PACED_MODEL, type Pace } from './pace.ts';

/**
 * A process that speaks the origin's protocol without a model, and that of an OpenAI-compatible server at
 * /v1. The prompt sets its pace, and the text of each event starts with the time of its write.
 */

/** A request as it is on the wire. */
type WireRequest = z.input<typeof generationRequest>;

/** The text of a token, as long as an average one. */
const WORD = ' word';

const textOf = (tokens: number): string => `${now().toFixed(3)} ${WORD.repeat(tokens - 1)}`;

/** How the answer to one request is written. */
interface Format {
  readonly contentType: string;
  readonly opening: string;
  readonly event: (completionTokens: number, tokens: number) => string;
  readonly end: string;
}

const lines = (...events: GenerationEvent[]): string => events.map(ndjsonLine).join('');

const originFormat = ({ maxTokens, model }: WireRequest): Format => ({
  contentType: 'application/x-ndjson',
  opening: lines(
    { type: 'accepted', model, promptTokens: [1] },
    { type: 'started', prompt: 0, cachedTokens: 0, queueMs: 0 },
  ),
  event: (completionTokens, tokens) =>
    lines({ type: 'token', choice: 0, text: textOf(tokens), completionTokens }),
  end: lines(
    { type: 'finish', choice: 0, reason: 'length', stopReason: null, completionTokens: maxTokens },
    {
      type: 'done',
      usage: { promptTokens: 1, cachedTokens: 0, completionTokens: maxTokens },
      timings: { queueMs: 0, promptMs: 0, generationMs: 0 },
    },
  ),
});

interface OpenAiRequest {
  readonly prompt: string | readonly string[];
  readonly max_tokens: number;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
}

function openAiFormat({ max_tokens: maxTokens, stream = false, stream_options }: OpenAiRequest): Format {
  const usage = { prompt_tokens: 1, completion_tokens: maxTokens, total_tokens: maxTokens + 1 };
  const head = { id: 'cmpl-paced', object: 'text_completion', created: 0, model: PACED_MODEL.id };
  const body = (text: string, finish_reason: string | null, more = {}) =>
    JSON.stringify({ ...head, choices: [{ text, index: 0, logprobs: null, finish_reason }], ...more });
  const data = (json: string) => `data: ${json}\n\n`;
  if (!stream) {
    // Plain requests ask for one event.
    const event = () => body(textOf(maxTokens), 'length', { usage });
    return { contentType: 'application/json', opening: '', event, end: '' };
  }
  const last = stream_options?.include_usage ? data(JSON.stringify({ ...head, choices: [], usage })) : '';
  return {
    contentType: 'text/event-stream',
    opening: '',
    event: (_, tokens) => data(body(textOf(tokens), null)),
    end: `${data(body('', 'length'))}${last}${data('[DONE]')}`,
  };
}

/** @throws SyntaxError if the prompt is no pace */
async function play(prompt: string, maxTokens: number, format: Format, response: ServerResponse) {
  const { startMs, intervalMs, tokensPerEvent } = JSON.parse(prompt) as Pace;
  if (startMs > 0) await sleep(startMs);
  response.writeHead(200, { 'content-type': format.contentType });
  const events = Math.ceil(maxTokens / tokensPerEvent);
  const event = (index: number) => format.event(Math.min(index * tokensPerEvent, maxTokens), tokensPerEvent);
  if (intervalMs === 0) {
    const all = Array.from({ length: events }, (_, index) => event(index + 1));
    response.end(`${format.opening}${all.join('')}${format.end}`);
  } else {
    if (format.opening !== '') response.write(format.opening);
    const begun = performance.now();
    for (let count = 1; count <= events && !response.destroyed; count += 1) {
      const early = begun + count * intervalMs - performance.now();
      // A timer waits at least 1 ms, so events that are due together are written together.
      if (early > 0) await sleep(early);
      if (!response.write(event(count)))
        await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
    response.end(format.end);
  }
}

const key = await importSigningKey(process.argv[2] ?? '');
const server = createServer(KEPT_CONNECTIONS, async (request, response) => {
  const body = await text(request);
  if (request.url === '/v1/models') return response.end(JSON.stringify({ data: [{ id: PACED_MODEL.id }] }));
  if (request.url === '/v1/completions') {
    const asked = JSON.parse(body) as OpenAiRequest;
    return play([asked.prompt].flat()[0] ?? '', asked.max_tokens, openAiFormat(asked), response);
  }
  const parts = { method: request.method ?? '', path: request.url ?? '' };
  const signed = await verify(key, request.headers[SIGNATURE_HEADER] as string | undefined, parts);
  if (!signed) return response.writeHead(401).end('{}');
  if (request.url === '/models')
    return response.end(JSON.stringify({ models: [PACED_MODEL], capabilities: CAPABILITIES }));
  const asked = JSON.parse(body) as WireRequest;
  return play(asked.prompts[0] as string, asked.maxTokens, originFormat(asked), response);
});
server.listen(Number(process.argv[3]), '127.0.0.1', () =>
  process.send?.((server.address() as AddressInfo).port),
);
process.on('disconnect', () => process.exit());
