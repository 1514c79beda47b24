import { ApiError } from '../../shared/errors.ts';
import { LineDecoder } from '../../shared/framing.ts';
import { type GenerationEvent, generationEvent } from '../../shared/generation.ts';
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

/** Checks the fields that the relay uses. A zod schema per event would cost more than the relay itself. */
function isEvent(event: Fields): boolean {
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
      return false;
  }
}

/** Which events are validated against the whole schema; the others by their outline. */
export type Validation = 'first' | 'every';

/**
 * Reads the events of one generation from the origin's NDJSON: one batch per network read. An empty batch is a
 * heartbeat. Lines and characters may be split anywhere.
 */
export class OriginStream implements AsyncIterableIterator<readonly GenerationEvent[]> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
  readonly #lines = new LineDecoder();
  readonly #validation: Validation;
  #isFirst = true;

  constructor(body: ReadableStream<Uint8Array>, validation: Validation) {
    this.#reader = body.getReader();
    this.#validation = validation;
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
    for (const line of lines) if (line !== '') events.push(this.#parse(line));
    return events;
  }

  #parse(line: string): GenerationEvent {
    let event: unknown;
    try {
      event = JSON.parse(line);
    } catch {
      throw malformed();
    }
    if (!isObject(event) || !isEvent(event)) throw malformed();
    if (this.#isFirst || this.#validation === 'every') {
      this.#isFirst = false;
      if (!generationEvent.safeParse(event).success) throw malformed();
    }
    return event as GenerationEvent;
  }
}
