import type { ServerResponse } from 'node:http';
import { headerList, IGNORED_KEYWORDS_HEADER } from '@continuo/shared/capabilities.ts';
import { ndjsonLine } from '@continuo/shared/framing.ts';
import { type EventOf, type GenerationEvent, isTerminal } from '@continuo/shared/generation.ts';
import type { EngineAccess } from '../serving/load-model.ts';

export interface ReaderLimits {
  /**
   * Bytes that may wait for a slow reader, in addition to the longest single write. The engine never pauses
   * for a reader, because that would hold a slot. A reader that is further behind loses its connection and
   * the generation is aborted.
   */
  readonly unreadBytes: number;
  /** Milliseconds after the terminal event within which the reader must have read the rest. */
  readonly drainMs: number;
}

export const READER_LIMITS: ReaderLimits = { unreadBytes: 16 * 2 ** 20, drainMs: 60_000 };

/** Writes the events of one generation to an HTTP response, as NDJSON. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #limits: ReaderLimits;
  /** Events that came before the head was written; null from then on. */
  #early: GenerationEvent[] | null = [];
  readonly #first = Promise.withResolvers<void>();
  #ended = false;
  #longestWrite = 0;

  constructor(response: ServerResponse, limits: ReaderLimits) {
    this.#response = response;
    this.#limits = limits;
  }

  /** True once the terminal event has been written. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The error that came before all other events, while the head is not written yet. */
  get failure(): EventOf<'error'> | null {
    const first = this.#early?.[0];
    return first?.type === 'error' ? first : null;
  }

  /** Resolves at the first write before the head is written, also of no events. */
  get first(): Promise<void> {
    return this.#first.promise;
  }

  /**
   * Answers 200 and writes `preamble`, then the early events.
   * @param ignoredKeywords of the constraint's schemas, for a header
   */
  open(preamble: readonly GenerationEvent[], ignoredKeywords: readonly string[]): void {
    if (this.#response.destroyed) return;
    this.#response.writeHead(200, {
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
      ...(ignoredKeywords.length === 0 ? {} : { [IGNORED_KEYWORDS_HEADER]: headerList(ignoredKeywords) }),
    });
    const events = [...preamble, ...(this.#early ?? [])];
    this.#early = null;
    this.write(events);
  }

  /** Writes all events at once. Ends the response after the terminal event. */
  write(events: readonly GenerationEvent[]): void {
    if (this.#early) {
      this.#first.resolve();
      this.#early.push(...events);
      return;
    }
    const response = this.#response;
    if (this.#ended || response.destroyed || events.length === 0) return;
    if (response.writableLength > this.#limits.unreadBytes + this.#longestWrite) {
      response.destroy();
      return;
    }
    const end = events.findIndex(isTerminal);
    const text = (end < 0 ? events : events.slice(0, end + 1)).map(ndjsonLine).join('');
    this.#longestWrite = Math.max(this.#longestWrite, text.length);
    response.write(text);
    if (end >= 0) this.#end();
  }

  /**
   * Writes a heartbeat, unless the reader has not read the last event yet.
   * @returns whether a heartbeat was written
   */
  beat(): boolean {
    const { destroyed, writableLength } = this.#response;
    if (this.#early || this.#ended || destroyed || writableLength > 0) return false;
    this.#response.write('\n');
    return true;
  }

  #end(): void {
    this.#ended = true;
    const timer = setTimeout(() => this.#response.destroy(), this.#limits.drainMs);
    timer.unref();
    this.#response.once('close', () => clearTimeout(timer));
    this.#response.end();
  }
}

/** Milliseconds; common proxies cut a connection after 60 s of silence. */
export const HEARTBEAT_MS = 15_000;

/**
 * Sends heartbeats while the engine works, for requests that wait in the queue or for a long prefill. A hung
 * engine sends no heartbeat, so the Worker gives the stream up.
 * @returns stops the heartbeats
 */
export function startHeartbeat(
  stream: Pick<EventStream, 'beat'>,
  engine: Pick<EngineAccess, 'status'>,
  everyMs: number,
): () => void {
  // Each report of the engine replaces the status object.
  let seen = engine.status;
  const timer = setInterval(() => {
    if (engine.status !== seen && stream.beat()) seen = engine.status;
  }, everyMs);
  return () => clearInterval(timer);
}
