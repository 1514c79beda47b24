import { DurableObject } from 'cloudflare:workers';
import { ApiError } from '@continuo/shared/errors.ts';
import { LineDecoder, SSE_DONE, SSE_KEEP_ALIVE, sseData } from '@continuo/shared/framing.ts';
import { inTime } from '@continuo/shared/time-limit.ts';
import type { Env } from '../../env/env.ts';
import type { InnerRequestProps, LoopbackWorker, Resumed, StreamTailRpc } from '../../env/replay-protocol.ts';
import { COMPLETION_HEADERS } from '../../http/headers.ts';
import { afterAlone } from '../../timers/request-timers.ts';
import { EventLog, endOf } from './event-log.ts';

/** A stream can be resumed for this long after its end. */
const RETENTION_MS = 60_000;
/** After this much silence, a reader gets a keep-alive comment. */
const KEEP_ALIVE_MS = 10_000;
/** A stream that has not ended by then is deleted. */
const MAX_STREAM_MS = 3_600_000;

/** Returns the events among the blocks of a stream, without its comments. */
const eventsOf = (blocks: readonly string[]): string[] => blocks.filter((block) => block.startsWith('data:'));

/** Returns the headers that a resumed stream repeats: those that say what of the body was ignored. */
const repeatedHeaders = (headers: Headers): Record<string, string> =>
  Object.fromEntries(
    Object.keys(COMPLETION_HEADERS).flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );

/** Terminal events of a stream that broke off. */
const INTERRUPTION = [
  sseData(new ApiError('upstream_error', 'The stream was interrupted.').envelope()).trimEnd(),
  SSE_DONE.trimEnd(),
];

const encoder = new TextEncoder();

/**
 * One resumable stream. Sends the request itself, so that the stream does not depend on a client's
 * connection. Stores the numbered events and serves them to readers from any number on. Deletes everything
 * one minute after the end.
 */
export class StreamTail extends DurableObject<Env> implements StreamTailRpc {
  readonly #log: EventLog;
  #news = Promise.withResolvers<void>();
  /** True while this object reads the stream. A restarted object cannot continue an unfinished stream. */
  #pumping = false;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#log = new EventLog(ctx.storage.sql, Date.now);
  }

  /** Answers a resumable request with a numbered stream, or with the response if it is no stream. */
  async begin(request: Request, tenantId: string, props: InnerRequestProps): Promise<Response> {
    const exports = this.ctx.exports as unknown as { default: LoopbackWorker };
    const response = await exports.default({ props }).fetch(request);
    const streams = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
    if (!streams || response.body === null) return response;
    this.#log.begin(tenantId, repeatedHeaders(response.headers));
    this.#pumping = true;
    await this.ctx.storage.setAlarm(Date.now() + MAX_STREAM_MS);
    this.ctx.waitUntil(this.#pump(response.body));
    return new Response(this.#follow(0), response);
  }

  /** Returns the events after `lastEventId`. A short rest is bytes, as a stream costs more. */
  async resume(lastEventId: number, tenantId: string): Promise<Resumed> {
    if (this.#log.stream()?.tenant !== tenantId) return null;
    await this.#endIfLost();
    if (lastEventId > this.#log.lastId()) return 'beyond-end';
    const rest = this.#pumping ? null : this.#log.after(endOf(lastEventId));
    return rest?.isLast ? rest.bytes : this.#follow(lastEventId);
  }

  async headers(tenantId: string): Promise<Readonly<Record<string, string>>> {
    return this.#log.stream()?.tenant === tenantId ? this.#log.headers() : {};
  }

  override async alarm(): Promise<void> {
    this.#pumping = false;
    await this.ctx.storage.deleteAll();
    this.#notify();
  }

  async #pump(body: ReadableStream<Uint8Array>): Promise<void> {
    const blocks = new LineDecoder('\n\n');
    const decoder = new TextDecoder();
    let last: string | undefined;
    try {
      for await (const bytes of body) {
        if (!this.#pumping) return;
        const events = eventsOf(blocks.push(decoder.decode(bytes, { stream: true })));
        this.#append(events);
        last = events.at(-1) ?? last;
      }
    } catch {
      // The missing [DONE] shows that the stream broke off.
    }
    if (this.#pumping) await this.#end(last === SSE_DONE.trimEnd() ? [] : INTERRUPTION);
  }

  async #end(last: readonly string[]): Promise<void> {
    this.#append(last);
    this.#log.end();
    this.#pumping = false;
    this.#notify();
    await this.ctx.storage.setAlarm(Date.now() + RETENTION_MS);
  }

  /** Ends a stream that this object cannot continue after a restart. The reader may know lost events. */
  async #endIfLost(): Promise<void> {
    if (this.#pumping || this.#log.stream()?.ended !== false) return;
    this.#log.skip();
    await this.#end(INTERRUPTION);
  }

  #append(events: readonly string[]): void {
    if (events.length === 0) return;
    this.#log.append(events);
    this.#notify();
  }

  /** Wakes all readers. */
  #notify(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers<void>();
  }

  /** Streams the numbered events after `from`, including future ones. A disconnected reader stops nothing. */
  #follow(from: number): ReadableStream<Uint8Array> {
    let position = endOf(from);
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      for (;;) {
        const news = this.#news.promise;
        if (!this.#pumping) {
          await this.#endIfLost();
          if (!this.#log.stream()) {
            // The stream was deleted before this slow reader reached its end.
            controller.enqueue(encoder.encode(INTERRUPTION.map((block) => `${block}\n\n`).join('')));
            return controller.close();
          }
        }
        const chunk = this.#log.after(position);
        if (chunk) {
          position = chunk.position;
          controller.enqueue(chunk.bytes);
          if (!this.#pumping && chunk.isLast) controller.close();
          return;
        }
        if (!this.#pumping) return controller.close();
        const arrived = await inTime(
          news.then(() => true),
          { after: afterAlone, ms: KEEP_ALIVE_MS },
        );
        if (arrived === null) return controller.enqueue(encoder.encode(SSE_KEEP_ALIVE));
      }
    };
    return new ReadableStream({ pull }, { highWaterMark: 0 });
  }
}
