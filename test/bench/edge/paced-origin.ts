import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { ndjsonLine } from '../../../shared/framing.ts';
import type { GenerationEvent, GenerationRequest } from '../../../shared/generation.ts';
import { importSigningKey, SIGNATURE_HEADER, verify } from '../../../shared/signing.ts';
import { now, PACED_MODEL, type Pace } from './pace.ts';

/**
 * A process that speaks the origin's protocol without a model. The prompt sets its pace, and the text of each event
 * starts with the time of its write.
 */

/** The text of a token, as long as an average one. */
const WORD = ' word';

function tokenEvent(completionTokens: number, tokens: number): GenerationEvent {
  const text = `${now().toFixed(3)} ${WORD.repeat(tokens - 1)}`;
  return { type: 'token', choice: 0, text, completionTokens };
}

function endOf(completionTokens: number): GenerationEvent[] {
  return [
    { type: 'finish', choice: 0, reason: 'length', stopReason: null, completionTokens },
    {
      type: 'done',
      usage: { promptTokens: 1, cachedTokens: 0, completionTokens },
      timings: { queueMs: 0, promptMs: 0, generationMs: 0 },
    },
  ];
}

async function play(request: GenerationRequest, response: ServerResponse): Promise<void> {
  const { prompts, maxTokens, model } = request;
  const { startMs, intervalMs, tokensPerEvent } = JSON.parse(prompts[0] as string) as Pace;
  const write = (...events: GenerationEvent[]) => response.write(events.map(ndjsonLine).join(''));
  if (startMs > 0) await sleep(startMs);
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  const opening: GenerationEvent[] = [
    { type: 'accepted', model, promptTokens: [1] },
    { type: 'started', prompt: 0, cachedTokens: 0, queueMs: 0 },
  ];
  const events = Math.ceil(maxTokens / tokensPerEvent);
  const event = (index: number) => tokenEvent(Math.min(index * tokensPerEvent, maxTokens), tokensPerEvent);
  if (intervalMs === 0) {
    write(...opening, ...Array.from({ length: events }, (_, index) => event(index + 1)), ...endOf(maxTokens));
  } else {
    write(...opening);
    const begun = performance.now();
    for (let count = 1; count <= events && !response.destroyed; count += 1) {
      await sleep(Math.max(0, begun + count * intervalMs - performance.now()));
      write(event(count));
    }
    write(...endOf(maxTokens));
  }
  response.end();
}

const key = await importSigningKey(process.argv[2] ?? '');
const server = createServer(async (request, response) => {
  const body = await text(request);
  const parts = { method: request.method ?? '', path: request.url ?? '' };
  const signed = await verify(key, request.headers[SIGNATURE_HEADER] as string | undefined, parts);
  if (!signed) return response.writeHead(401).end('{}');
  if (request.url === '/models') return response.end(JSON.stringify({ models: [PACED_MODEL] }));
  return play(JSON.parse(body) as GenerationRequest, response);
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('disconnect', () => process.exit());
