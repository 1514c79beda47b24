import { DurableObject } from 'cloudflare:workers';
import { ApiError } from '../../../shared/errors.ts';
import { SSE_DONE, SSE_KEEP_ALIVE, sseData } from '../../../shared/framing.ts';
import type { Env } from '../../env.ts';
import { afterAlone } from '../../timers/request-timers.ts';
import { EventBlocks } from '../event-blocks.ts';
import { behind, EventLog } from './event-log.ts';

/** A stream can be resumed for this long after its end. */
const RETENTION_MS = 60_000;
/** Silence after which a follower gets a comment line. */
const KEEP_ALIVE_MS = 10_000;
/** One that never ends is given up after this. */
const LONGEST_MS = 3_600_000;

/** What ends a stream in the place of the end that will not come. */
const INTERRUPTION = new EventBlocks().push(
  sseData(new ApiError('upstream_error', 'The stream was interrupted.').envelope()) + SSE_DONE,
);
const DONE = new EventBlocks().push(SSE_DONE)[0];

const encoder = new TextEncoder();

/** The Worker itself, seen from inside, with what only it can say to itself. */
export type OwnWorker = (options: { props: InnerProps }) => Fetcher;

/** Given to the request that a resumable stream makes to its own Worker. */
export interface InnerProps {
  /** Hex part of the completion's id, by which the stream is found again. */
  readonly completion: string;
  /** Where the caller's limits are decided: of a request made inside, the platform tells no place. */
  readonly region: string | null;
}

/**
 * One resumable stream: makes the request itself, so that no client's connection carries it, keeps its events with
 * numbers, and serves them from any number on to whoever follows. Gone a minute after the end.
 */
export class StreamTail extends DurableObject<Env> {
  readonly #log: EventLog;
  #news = Promise.withResolvers<void>();
  /** The pump runs in this object's memory; without it an unfinished stream has no one to go on. */
  #pumping = false;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#log = new EventLog(ctx.storage.sql);
  }

  /** The answer to a resumable request: a numbered stream, or whatever else the Worker answers. */
  async begin(request: Request, tenantId: string, props: InnerProps): Promise<Response> {
    const exports = this.ctx.exports as unknown as { default: OwnWorker };
    const answer = await exports.default({ props }).fetch(request);
    const streams = answer.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
    if (!streams || answer.body === null) return answer;
    this.#log.begin(tenantId);
    this.#pumping = true;
    await this.ctx.storage.setAlarm(Date.now() + LONGEST_MS);
    this.ctx.waitUntil(this.#pump(answer.body));
    return new Response(this.#follow(0), answer);
  }

  /** The events after `lastEventId`; null when there is no such stream of this tenant. */
  async resume(lastEventId: number, tenantId: string): Promise<ReadableStream<Uint8Array> | null> {
    return this.#log.stream()?.tenant === tenantId ? this.#follow(lastEventId) : null;
  }

  override async alarm(): Promise<void> {
    this.#pumping = false;
    await this.ctx.storage.deleteAll();
    this.#tell();
  }

  async #pump(body: ReadableStream<Uint8Array>): Promise<void> {
    const blocks = new EventBlocks();
    const decoder = new TextDecoder();
    let last: string | undefined;
    try {
      for await (const bytes of body) {
        if (!this.#pumping) return;
        const found = blocks.push(decoder.decode(bytes, { stream: true }));
        this.#keep(found);
        last = found.at(-1) ?? last;
      }
    } catch {
      // What it lacks then is its end.
    }
    if (this.#pumping) await this.#end(last === DONE ? [] : INTERRUPTION);
  }

  async #end(last: readonly string[]): Promise<void> {
    this.#keep(last);
    this.#log.end();
    this.#pumping = false;
    this.#tell();
    await this.ctx.storage.setAlarm(Date.now() + RETENTION_MS);
  }

  #keep(blocks: readonly string[]): void {
    if (blocks.length === 0) return;
    this.#log.keep(blocks);
    this.#tell();
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers<void>();
  }

  /** Numbered events after `from`, those to come included. Leaving it stops nothing. */
  #follow(from: number): ReadableStream<Uint8Array> {
    let place = behind(from);
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      for (;;) {
        const news = this.#news.promise;
        // What is being pumped is there.
        if (!this.#pumping) {
          const stream = this.#log.stream();
          if (!stream) {
            // Whoever has read the end was let go: this one was so slow that the stream's time is over.
            controller.enqueue(encoder.encode(INTERRUPTION.map((block) => `${block}\n\n`).join('')));
            return controller.close();
          }
          if (!stream.ended) await this.#end(INTERRUPTION);
        }
        const reading = this.#log.after(place);
        if (reading) {
          place = reading.place;
          controller.enqueue(reading.bytes);
          if (!this.#pumping && !this.#log.after(place)) controller.close();
          return;
        }
        if (!this.#pumping) return controller.close();
        if (!(await inTime(news))) return controller.enqueue(encoder.encode(SSE_KEEP_ALIVE));
      }
    };
    return new ReadableStream({ pull }, { highWaterMark: 0 });
  }
}

/** False when silence lasts too long. */
function inTime(news: Promise<void>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const lift = afterAlone(KEEP_ALIVE_MS, () => resolve(false));
  void news.then(() => {
    lift();
    resolve(true);
  });
  return promise;
}
