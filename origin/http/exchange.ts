import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../log.ts';
import type { UsageAccounts } from '../request/usage-accounts.ts';
import type { Service } from '../serving/service.ts';
import type { Authenticator } from './authentication.ts';
import type { ReaderLimits } from './event-stream.ts';
import type { Metrics } from './metrics.ts';

/** What every route may use. */
export interface ServerContext {
  readonly service: Service;
  readonly authenticator: Authenticator;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly readerLimits: ReaderLimits;
  /** Milliseconds between a silent stream's signs of life. */
  readonly heartbeatMs: number;
  readonly usageAccounts: UsageAccounts;
  /** Unix milliseconds. */
  now(): number;
  /** A name that no other request has had. */
  newId(): string;
  /** A fresh random seed. */
  drawSeed(): number;
}

/** One request with its body read and its signature checked, where the route needs that. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly body: string;
  /** Unix milliseconds. */
  readonly receivedAt: number;
}

export type Handler = (exchange: Exchange, context: ServerContext) => Promise<void> | void;

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(value));
}

/** Aborted as soon as the caller has gone. */
export function leaving(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  if (response.destroyed) controller.abort();
  else response.once('close', () => controller.abort());
  return controller.signal;
}

/** What work comes to; null where it was given up because the caller has left. */
export async function unlessLeft<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error === signal.reason) return null;
    throw error;
  }
}
