import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { serve } from '../../support/local-server.ts';

/** An OpenAI-compatible completions server that does what a script says. */
export interface FakeOpenAi {
  readonly url: string;
  script: (body: Record<string, unknown>, response: ServerResponse) => void;
  readonly bodies: Record<string, unknown>[];
  /** The bodies as they were sent. */
  readonly texts: string[];
  readonly headers: IncomingHttpHeaders[];
  stop(): Promise<void>;
}

export const sse = (payload: unknown): string => `data: ${JSON.stringify(payload)}\n\n`;

const USAGE = { prompt_tokens: 7, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 3 } };

/** Two words per choice, then usage. */
export function answer({ stream }: Record<string, unknown>, response: ServerResponse): void {
  if (stream === false) {
    const choices = [{ index: 0, text: 'Hello there', logprobs: null, finish_reason: 'length' }];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ choices, usage: USAGE }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(': a comment\n\n');
  response.write(sse({ choices: [{ index: 0, text: 'Hello', logprobs: null, finish_reason: null }] }));
  response.write(
    sse({ choices: [{ index: 0, text: ' there', finish_reason: 'length', stop_reason: null }] }),
  );
  response.write(sse({ choices: [], usage: USAGE }));
  response.end('data: [DONE]\n\n');
}

export async function startFakeOpenAi(): Promise<FakeOpenAi> {
  const { url, stop } = await serve(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    const body = JSON.parse(text === '' ? '{}' : text) as Record<string, unknown>;
    fake.bodies.push(body);
    fake.texts.push(text);
    fake.headers.push(request.headers);
    fake.script(body, response);
  });
  const fake: FakeOpenAi = {
    url: `${url}/v1`,
    script: answer,
    bodies: [],
    texts: [],
    headers: [],
    stop,
  };
  return fake;
}
