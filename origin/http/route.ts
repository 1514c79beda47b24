import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../process/log.ts';
import type { UsageAccounts } from '../request/usage-accounts.ts';
import type { Service } from '../serving/service.ts';
import type { Authenticate } from './authentication.ts';
import type { ReaderLimits } from './event-stream.ts';
import type { Metrics } from './metrics.ts';
import type { TraceExport } from './trace-export.ts';

/** Dependencies of the routes. */
export interface ServerContext {
  readonly service: Service;
  readonly authenticate: Authenticate;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Null if no collector takes traces. */
  readonly traces: TraceExport | null;
  readonly readerLimits: ReaderLimits;
  /** Milliseconds between the heartbeats of a silent stream. */
  readonly heartbeatMs: number;
  readonly usageAccounts: UsageAccounts;
  /** Unix milliseconds. */
  now(): number;
  /** Returns a new unique id. */
  newId(): string;
  /** Returns a new random seed. */
  drawSeed(): number;
}

/** One request. If its route requires a signature, the body has been read and the signature checked. */
export interface ReceivedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly body: string;
  /** Unix milliseconds. */
  readonly receivedAt: number;
}

export type OriginRouteHandler = (received: ReceivedRequest, context: ServerContext) => Promise<void> | void;

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(value));
}

/** Returns a signal that aborts when the connection closes. */
export function closeSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  if (response.destroyed) controller.abort();
  else response.once('close', () => controller.abort());
  return controller.signal;
}

/** Returns the result of `work`, or null if it was aborted by the signal. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error === signal.reason) return null;
    throw error;
  }
}
