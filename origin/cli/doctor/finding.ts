/** What `continuo doctor` reports about one thing that can be wrong. */
export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly name: string;
  readonly text: string;
  /** What to do; absent if the status is ok. */
  readonly advice?: string;
}

export const ok = (name: string, text: string): Finding => ({ status: 'ok', name, text });

export const warn = (name: string, text: string, advice: string): Finding => ({
  status: 'warn',
  name,
  text,
  advice,
});

export const fail = (name: string, text: string, advice: string): Finding => ({
  status: 'fail',
  name,
  text,
  advice,
});

/** A JSON answer and the server's clock. */
interface Reply {
  readonly body: unknown;
  /** Unix milliseconds in steps of one second; NaN if the server does not tell. */
  readonly date: number;
}

const TIMEOUT_MS = 3000;

/** Returns the answer of an address, whatever its status; null if nothing answers with JSON. */
export async function fetchReply(url: string | URL): Promise<Reply | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const date = Date.parse(response.headers.get('date') ?? '');
    return { body: (await response.json()) as unknown, date };
  } catch {
    return null;
  }
}

/** Reports whether an answer of /health is that of a Worker or an origin. */
export const isHealth = (reply: Reply | null): boolean =>
  typeof reply?.body === 'object' && reply.body !== null && 'status' in reply.body;
