import { Agent, request as httpRequest } from 'node:http';
import { LineDecoder } from '../../../../shared/framing.ts';
import { importSigningKey, SIGNATURE_HEADER, sign } from '../../../../shared/signing.ts';
import { request as generationRequest } from '../../../support/generation-request.ts';
import { now, PACED_MODEL, type Pace } from './pace.ts';

/** What a client measured of one answer; times in milliseconds. */
export interface Seen {
  readonly ms: number;
  /** Per event: from the origin's write to the client's read. */
  readonly delays: readonly number[];
}

/** One path to the origin. */
export interface Path {
  run(pace: Pace, tokens: number, stream: boolean): Promise<Seen>;
  close(): void;
}

export type Headers = Readonly<Record<string, string>>;

function request(url: string, headers: Headers, body: string, agent: Agent): Promise<Seen> {
  const sent = now();
  const delays: number[] = [];
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
      const lines = new LineDecoder();
      response.setEncoding('utf8').on('data', (text: string) => {
        const at = now();
        for (const line of lines.push(text)) {
          const writtenAt = /"text":"([\d.]+) /.exec(line)?.[1];
          if (writtenAt !== undefined) delays.push(at - Number(writtenAt));
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

/** The address of a path and its credential; plain data, because it crosses processes. */
export type Way =
  | { readonly kind: 'origin'; readonly url: string; readonly secret: string }
  /** `url` = base address of an OpenAI-compatible server, with its version. */
  | { readonly kind: 'openai'; readonly url: string; readonly headers: Headers };

export const openPath = async (way: Way): Promise<Path> =>
  way.kind === 'origin' ? directPath(way.url, way.secret) : openAiPath(way.url, way.headers);

/** Calls the origin directly, signed like the Worker's requests. */
async function directPath(url: string, secret: string): Promise<Path> {
  const agent = newAgent();
  const key = await importSigningKey(secret);
  return {
    async run(pace, maxTokens, stream) {
      const prompts = [JSON.stringify(pace)];
      const body = JSON.stringify(generationRequest({ model: PACED_MODEL.id, prompts, maxTokens, stream }));
      const claims = { timestamp: Date.now(), nonce: crypto.randomUUID() };
      const signature = await sign(key, { method: 'POST', path: '/generate', body }, claims);
      return request(`${url}/generate`, { [SIGNATURE_HEADER]: signature }, body, agent);
    },
    close: () => agent.destroy(),
  };
}

/** Calls the same origin through the Worker or another gateway. */
function openAiPath(url: string, own: Headers): Path {
  const agent = newAgent();
  const headers = { ...own, 'content-type': 'application/json' };
  return {
    run(pace, tokens, stream) {
      const prompt = JSON.stringify(pace);
      const body = JSON.stringify({ model: PACED_MODEL.id, prompt, max_tokens: tokens, stream });
      return request(`${url}/completions`, headers, body, agent);
    },
    close: () => agent.destroy(),
  };
}
