import { setTimeout as sleep } from 'node:timers/promises';
import type { System } from '../../support/system.ts';

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

/** Calls the admin API: a POST with a body, otherwise a GET. @throws if it refuses */
async function admin({ url, apiKey }: System, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** Creates a tenant, without limits unless some are given, and returns a key of it. */
export async function newTenant(
  system: System,
  id: string,
  limits: Readonly<Record<string, number>> = {},
): Promise<string> {
  await admin(system, '/tenants', { id, name: id, limits });
  return newKey(system, id);
}

/** Creates another key of a tenant. */
export async function newKey(system: System, tenant: string): Promise<string> {
  const { key } = (await admin(system, '/keys', { tenant, name: tenant })) as { readonly key: string };
  return key;
}

interface Usage {
  readonly completed: number;
  readonly cancelled: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

/** Returns the sums of a usage query as soon as they are as expected. */
export async function usageOf(
  system: System,
  query: string,
  isExpected: (usage: Usage) => boolean,
): Promise<Usage> {
  for (;;) {
    const { total } = (await admin(system, `/usage?${query}`)) as { readonly total: Usage };
    if (isExpected(total)) return total;
    await sleep(20);
  }
}

export interface Answer {
  /** 0 if there was none in time. */
  readonly status: number;
  readonly ms: number;
}

/** Posts a body as a tenant and reads the whole answer. */
export async function post(
  url: string,
  key: string,
  body: unknown,
  timeoutMs: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const sent = performance.now();
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
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
