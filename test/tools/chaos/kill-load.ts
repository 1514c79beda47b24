import { SseDecoder } from '../../../shared/framing.ts';
import type { WorkerClient } from '../../worker/support/worker.ts';

/** What the clients of one load have received. */
export interface Received {
  /** Ids of the requests. */
  readonly sent: readonly string[];
  /** Generated tokens, by their ids in the chunks or by the usage of a whole plain answer. */
  readonly tokens: number;
  /** Answers that ended as if they were complete, without being so. */
  readonly falseEnds: number;
  /** Answers that were complete. */
  readonly complete: number;
}

interface Fields {
  readonly prompt: string;
  readonly n: number;
  readonly stream: boolean;
}

interface Chunk {
  readonly error?: unknown;
  readonly choices?: readonly {
    readonly token_ids?: readonly number[];
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly completion_tokens: number };
}

const MAX_TOKENS = 400;
/** Streams and plain requests, with one and two choices. */
const LOAD: readonly Fields[] = [1, 1, 1, 2, 1, 2].map((n, index) => ({
  prompt: `Request ${index}:`,
  n,
  stream: index < 4,
}));

/** Requests that run at the same time. */
export const LOAD_REQUESTS = LOAD.length;

const NOTHING: Received = { sent: [], tokens: 0, falseEnds: 0, complete: 0 };

const finishedIn = ({ choices = [] }: Chunk): number =>
  choices.filter(({ finish_reason }) => finish_reason !== null).length;

/** Reads a stream until its end, or until the connection breaks. */
async function readStream(response: Response, { n }: Fields): Promise<Received> {
  const sse = new SseDecoder();
  const decoder = new TextDecoder();
  let tokens = 0;
  let finished = 0;
  let failed = false;
  let done = false;
  const take = (payload: string): void => {
    if (payload === '[DONE]') {
      done = true;
      return;
    }
    const chunk = JSON.parse(payload) as Chunk;
    failed ||= chunk.error !== undefined;
    finished += finishedIn(chunk);
    for (const { token_ids: ids } of chunk.choices ?? []) tokens += ids?.length ?? 0;
  };
  try {
    for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
      for (const payload of sse.push(decoder.decode(bytes, { stream: true }))) take(payload);
    }
    // A body that ends in an ordinary way must end with [DONE].
    if (!done) return { ...NOTHING, tokens, falseEnds: 1 };
  } catch {
    // The connection broke, which no client takes for an end.
  }
  const complete = done && !failed && finished === n;
  return { ...NOTHING, tokens, falseEnds: done && !failed && !complete ? 1 : 0, complete: complete ? 1 : 0 };
}

/** Reads a plain answer. One that breaks off has given its client nothing. */
async function readPlain(response: Response, { n }: Fields): Promise<Received> {
  const text = await response.text().catch(() => null);
  if (text === null) return NOTHING;
  try {
    const answer = JSON.parse(text) as Chunk;
    const complete = finishedIn(answer) === n;
    return {
      ...NOTHING,
      tokens: answer.usage?.completion_tokens ?? 0,
      falseEnds: complete ? 0 : 1,
      complete: complete ? 1 : 0,
    };
  } catch {
    return { ...NOTHING, falseEnds: 1 };
  }
}

/** The headers of a request with an id that its sender chooses: it is known however the answer ends. */
export function headersOf(key: string, id: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${key}`, 'x-request-id': id };
}

async function send(client: WorkerClient, key: string, id: string, fields: Fields): Promise<Received> {
  const body = {
    model: 'default',
    max_tokens: MAX_TOKENS,
    ignore_eos: true,
    return_token_ids: true,
    ...fields,
  };
  const response = await client.post(body, { headers: headersOf(key, id) }).catch(() => null);
  if (response === null) return NOTHING;
  if (response.status !== 200) {
    await response.text().catch(() => {});
    return NOTHING;
  }
  return fields.stream ? readStream(response, fields) : readPlain(response, fields);
}

export const add = (one: Received, other: Received): Received => ({
  sent: [...one.sent, ...other.sent],
  tokens: one.tokens + other.tokens,
  falseEnds: one.falseEnds + other.falseEnds,
  complete: one.complete + other.complete,
});

/** Keeps all requests running until `isOver`, and reads their answers to the end, however they end. */
export async function sendLoad(client: WorkerClient, key: string, isOver: () => boolean): Promise<Received> {
  let requests = 0;
  const repeat = async (fields: Fields): Promise<Received> => {
    let received = NOTHING;
    do {
      const id = `load-${requests++}`;
      received = add(received, { ...(await send(client, key, id, fields)), sent: [id] });
    } while (!isOver());
    return received;
  };
  return (await Promise.all(LOAD.map(repeat))).reduce(add);
}
