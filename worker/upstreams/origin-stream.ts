import { ApiError } from '@continuo/shared/errors.ts';
import { LineDecoder } from '@continuo/shared/framing.ts';
import { type GenerationEvent, generationEvent } from '@continuo/shared/generation.ts';
import { interrupted, malformed } from './upstream-errors.ts';

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
const isUsage = (value: unknown): boolean =>
  isObject(value) &&
  isCount(value.promptTokens) &&
  isCount(value.cachedTokens) &&
  isCount(value.completionTokens);
const isLogprobs = (value: unknown): boolean => value === undefined || Array.isArray(value);

/**
 * Checks the fields that the relay uses. A zod schema per event would cost more than the relay itself.
 * @returns null for a type of event that this version does not know
 */
function isEvent(event: Fields): boolean | null {
  switch (event.type) {
    case 'token':
      return (
        isCount(event.choice) &&
        typeof event.text === 'string' &&
        isCount(event.completionTokens) &&
        isLogprobs(event.logprobs)
      );
    case 'finish':
      return (
        isCount(event.choice) &&
        (event.reason === 'stop' || event.reason === 'length') &&
        isCount(event.completionTokens)
      );
    case 'accepted':
      return typeof event.model === 'string' && Array.isArray(event.promptTokens);
    case 'started':
      return isCount(event.prompt) && isCount(event.cachedTokens);
    case 'prompt':
      return (
        isCount(event.prompt) &&
        typeof event.text === 'string' &&
        Array.isArray(event.ids) &&
        isLogprobs(event.logprobs)
      );
    case 'done':
      return isUsage(event.usage) && isObject(event.timings);
    case 'error':
      return typeof event.code === 'string' && typeof event.message === 'string';
    default:
      return typeof event.type === 'string' ? null : false;
  }
}

/** Which events are validated against the whole schema; the others by their outline. */
export type Validation = 'first' | 'every';

/**
 * Reads the events of one generation from the origin's NDJSON: one batch per network read. An empty batch is
 * a heartbeat. Lines and characters may be split anywhere.
 */
export class OriginStream implements AsyncIterableIterator<readonly GenerationEvent[]> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
  readonly #lines = new LineDecoder();
  readonly #validation: Validation;
  #isFirst = true;

  readonly #report: (detail: string) => void;

  /** @param report called with what is wrong, before the stream fails */
  constructor(body: ReadableStream<Uint8Array>, validation: Validation, report: (detail: string) => void) {
    this.#reader = body.getReader();
    this.#validation = validation;
    this.#report = report;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** @throws ApiError 502 if the connection breaks or a line is not an event */
  async next(): Promise<IteratorResult<readonly GenerationEvent[]>> {
    try {
      for (;;) {
        const { value, done } = await this.#reader.read();
        if (done) return { value: undefined, done };
        const lines = this.#lines.push(this.#decoder.decode(value, { stream: true }));
        if (lines.length > 0) return { value: this.#events(lines), done: false };
      }
    } catch (thrown) {
      void this.return();
      throw thrown instanceof ApiError ? thrown : interrupted();
    }
  }

  async return(): Promise<IteratorResult<readonly GenerationEvent[]>> {
    await this.#reader.cancel().catch(() => {});
    return { value: undefined, done: true };
  }

  #events(lines: readonly string[]): GenerationEvent[] {
    const events: GenerationEvent[] = [];
    for (const line of lines) {
      const event = line === '' ? null : this.#parse(line);
      if (event !== null) events.push(event);
    }
    return events;
  }

  /** Returns null for an event that a newer origin added. */
  #parse(line: string): GenerationEvent | null {
    let event: unknown;
    try {
      event = JSON.parse(line);
    } catch {
      throw this.#malformed('A line of the stream is not JSON.');
    }
    const isKnown = isObject(event) && isEvent(event);
    if (isKnown === null) return null;
    if (!isKnown) throw this.#malformed('An event lacks a field, or a field is invalid.');
    if (this.#isFirst || this.#validation === 'every') {
      this.#isFirst = false;
      const { error } = generationEvent.safeParse(event);
      if (error) throw this.#malformed(`An event has an invalid '${error.issues[0]!.path.join('.')}'.`);
    }
    return event as GenerationEvent;
  }

  #malformed(detail: string): ApiError {
    this.#report(detail);
    return malformed();
  }
}
