import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { NDJSON, written } from '../../../origin/http/notation.ts';
import { UsageAccounts } from '../../../origin/request/usage-accounts.ts';
import type { GenerationEvent, GenerationRequest } from '../../../shared/generation.ts';
import { importSigningKey, SIGNATURE_HEADER, verify } from '../../../shared/signing.ts';
import { now, PACED_MODEL, type Pace } from './pace.ts';

/**
 * A process of its own that speaks the origin's protocol without a model: what a request then takes is the path's own
 * time. The prompt says how fast it goes; the text of each token is the time at which it was written.
 */

function token(completionTokens: number): GenerationEvent {
  return { type: 'token', choice: 0, text: `${now().toFixed(3)} `, completionTokens };
}

const recent = new UsageAccounts(Date.now);

async function play(request: GenerationRequest, response: ServerResponse): Promise<void> {
  const { prompts, maxTokens, model, written: form } = request;
  const pace = JSON.parse(prompts[0] as string) as Pace;
  const account = recent.open(request.account ?? crypto.randomUUID(), Date.now());
  const notation = form ? written({ request, form, account: account.snapshot, now: Date.now }) : NDJSON;
  const write = (...events: GenerationEvent[]) => {
    account.observe(events);
    response.write(notation.text(events));
  };
  if (pace.startMs > 0) await sleep(pace.startMs);
  response.writeHead(200, { 'content-type': notation.contentType });
  const opening: GenerationEvent[] = [
    { type: 'accepted', model, promptTokens: [1] },
    { type: 'started', prompt: 0, cachedTokens: 0, queueMs: 0 },
  ];
  const end: GenerationEvent[] = [
    { type: 'finish', choice: 0, reason: 'length', stopReason: null, completionTokens: maxTokens },
    {
      type: 'done',
      usage: { promptTokens: 1, cachedTokens: 0, completionTokens: maxTokens },
      timings: { queueMs: 0, promptMs: 0, generationMs: 0 },
    },
  ];
  if (pace.intervalMs === 0) {
    write(...opening, ...Array.from({ length: maxTokens }, (_, index) => token(index + 1)), ...end);
  } else {
    write(...opening);
    const begun = performance.now();
    for (let count = 1; count <= maxTokens && !response.destroyed; count += 1) {
      await sleep(Math.max(0, begun + count * pace.intervalMs - performance.now()));
      write(token(count));
    }
    write(...end);
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
