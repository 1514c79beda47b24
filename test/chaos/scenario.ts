import type { System } from '../support/system.ts';

/** One figure of a scenario. */
export interface Measurement {
  /** What was measured, with its unit. */
  readonly figure: string;
  readonly value: number;
  /** The largest value allowed; absent if the figure is only shown. */
  readonly atMost?: number;
  /** The smallest value allowed. */
  readonly atLeast?: number;
}

/** An attack or a fault, and what it does to the callers who have no part in it. */
export interface Scenario {
  readonly name: string;
  readonly summary: string;
  /** Starts what it needs and stops it again. */
  run(): Promise<readonly Measurement[]>;
}

export const holds = ({ value, atMost = Infinity, atLeast = -Infinity }: Measurement): boolean =>
  value <= atMost && value >= atLeast;

/** Creates a tenant, by default without limits, and returns a key of it. */
export async function newTenant(
  { url, apiKey }: System,
  id: string,
  limits: Readonly<Record<string, number>> = {},
): Promise<string> {
  const create = async (path: string, body: unknown): Promise<Record<string, unknown>> => {
    const response = await fetch(`${url}/admin/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  await create('/tenants', { id, name: id, limits });
  const { key } = await create('/keys', { tenant: id, name: id });
  return String(key);
}

export interface Answer {
  /** 0 if there was none in time. */
  readonly status: number;
  readonly ms: number;
}

/** Posts a body as a tenant and reads the whole answer. */
export async function post(url: string, key: string, body: unknown, timeoutMs: number): Promise<Answer> {
  const sent = performance.now();
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(timeoutMs),
  })
    .then(async (response) => {
      await response.arrayBuffer();
      return response.status;
    })
    .catch(() => 0);
  return { status: answer, ms: performance.now() - sent };
}
