import { Agent, request as httpRequest } from 'node:http';
import { LineDecoder } from '../../../shared/framing.ts';
import { importSigningKey, SIGNATURE_HEADER, sign } from '../../../shared/signing.ts';
import { request as generationRequest } from '../../support/generation-request.ts';
import { writtenForm } from '../../support/written-form.ts';
import { now, PACED_MODEL, type Pace } from './pace.ts';

/** What a client saw of one answer; times in milliseconds. */
export interface Seen {
  readonly ms: number;
  /** Per token: from the origin's write to the client's read. */
  readonly delays: readonly number[];
}

/** One way to the same origin. */
export interface Path {
  run(pace: Pace, tokens: number, stream: boolean): Promise<Seen>;
  close(): void;
}

type Headers = Readonly<Record<string, string>>;

function exchange(url: string, headers: Headers, body: string, agent: Agent): Promise<Seen> {
  const sent = now();
  const delays: number[] = [];
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
      const lines = new LineDecoder();
      response.setEncoding('utf8').on('data', (text: string) => {
        const at = now();
        for (const line of lines.push(text)) {
          const written = /"text":"([\d.]+) "/.exec(line)?.[1];
          if (written !== undefined) delays.push(at - Number(written));
        }
      });
      response.on('error', reject).on('end', () => {
        if (response.statusCode === 200) resolve({ ms: now() - sent, delays });
        else reject(new Error(`${url} answered ${response.statusCode}`));
      });
    });
    outgoing.on('error', reject).end(body);
  });
}

const newAgent = () => new Agent({ keepAlive: true, maxSockets: 1024 });

/** Where a path leads and what opens it; plain data. */
export type Way =
  | { readonly kind: 'origin'; readonly url: string; readonly secret: string }
  | { readonly kind: 'worker'; readonly url: string; readonly apiKey: string };

export const openPath = async (way: Way): Promise<Path> =>
  way.kind === 'origin' ? directPath(way.url, way.secret) : workerPath(way.url, way.apiKey);

const envelope = { ...writtenForm().envelope, model: PACED_MODEL.id };
/** A stream as the Worker asks for it, so that the same bytes go every way. */
const WRITTEN = writtenForm({ envelope });

/** The origin asked directly, signed like the Worker's own requests. */
async function directPath(url: string, secret: string): Promise<Path> {
  const agent = newAgent();
  const key = await importSigningKey(secret);
  return {
    async run(pace, maxTokens, stream) {
      const prompts = [JSON.stringify(pace)];
      const written = stream ? { written: WRITTEN } : {};
      const body = JSON.stringify(
        generationRequest({ model: PACED_MODEL.id, prompts, maxTokens, stream, ...written }),
      );
      const claims = { timestamp: Date.now(), nonce: crypto.randomUUID() };
      const signature = await sign(key, { method: 'POST', path: '/generate', body }, claims);
      return exchange(`${url}/generate`, { [SIGNATURE_HEADER]: signature }, body, agent);
    },
    close: () => agent.destroy(),
  };
}

/** The same origin behind the Worker. */
function workerPath(url: string, apiKey: string): Path {
  const agent = newAgent();
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  return {
    run(pace, tokens, stream) {
      const prompt = JSON.stringify(pace);
      const body = JSON.stringify({ model: PACED_MODEL.id, prompt, max_tokens: tokens, stream });
      return exchange(`${url}/v1/completions`, headers, body, agent);
    },
    close: () => agent.destroy(),
  };
}
