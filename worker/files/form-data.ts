import { ApiError } from '@continuo/shared/errors.ts';
import { joinedBytes } from '@continuo/shared/framing.ts';

/** Reads multipart/form-data (RFC 7578) as a stream: the body of a part is never held as a whole. */

/** A part of a form. Its content can be read once, before the next part. */
export interface FormPart {
  readonly name: string;
  /** Null for a plain field. */
  readonly filename: string | null;
  readonly content: AsyncIterable<Uint8Array>;
}

const MAX_HEAD_BYTES = 8_192;
const EMPTY = new Uint8Array();
const encoder = new TextEncoder();

const malformed = (why: string): ApiError =>
  new ApiError('invalid_value', `Invalid multipart/form-data body: ${why}.`);

/** Returns the boundary that a request's Content-Type names. @throws ApiError 415 for another media type */
export function boundaryOf({ headers }: Request): string {
  const type = headers.get('content-type') ?? '';
  const [, quoted, plain] =
    /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s";]{1,70}))/i.exec(type) ?? [];
  const boundary = quoted ?? plain;
  if (boundary !== undefined) return boundary;
  const message = "Unsupported Content-Type: expected 'multipart/form-data' with a boundary.";
  throw new ApiError('unsupported_media_type', message);
}

/** Reads a byte stream up to delimiters. The caller closes it. */
class DelimitedReader {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #buffer: Uint8Array = EMPTY;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** Yields the bytes before the delimiter, and skips it. @throws ApiError 400 if the body ends before it */
  async *until(delimiter: Uint8Array): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = indexOf(this.#buffer, delimiter);
      // The end of the buffer may be the beginning of the delimiter.
      const whole = at >= 0 ? at : Math.max(0, this.#buffer.length - delimiter.length + 1);
      const before = this.#buffer.subarray(0, whole);
      this.#buffer = this.#buffer.subarray(at >= 0 ? at + delimiter.length : whole);
      if (before.length > 0) yield before;
      if (at >= 0) return;
      await this.#more();
    }
  }

  async take(count: number): Promise<Uint8Array> {
    while (this.#buffer.length < count) await this.#more();
    const taken = this.#buffer.subarray(0, count);
    this.#buffer = this.#buffer.subarray(count);
    return taken;
  }

  /** Lets the source end, which may still discard its rest. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }

  async #more(): Promise<void> {
    const { value, done } = await this.#pieces.next();
    if (done) throw malformed('it ends too early');
    this.#buffer = joinedBytes([this.#buffer, value]);
  }
}

function indexOf(bytes: Uint8Array, wanted: Uint8Array): number {
  for (let at = bytes.indexOf(wanted[0]!); at >= 0; at = bytes.indexOf(wanted[0]!, at + 1)) {
    if (at + wanted.length > bytes.length) return -1;
    if (wanted.every((byte, index) => bytes[at + index] === byte)) return at;
  }
  return -1;
}

/** Returns bytes as text. @throws ApiError 400 above the limit */
export async function shortText(content: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let size = 0;
  for await (const bytes of content) {
    size += bytes.length;
    if (size > maxBytes) throw malformed(`a field is longer than ${maxBytes} bytes`);
    text += decoder.decode(bytes, { stream: true });
  }
  return text + decoder.decode();
}

/** Yields the parts of a body in their order. @throws ApiError 400 if it is malformed */
export async function* formParts(
  pieces: AsyncIterable<Uint8Array>,
  boundary: string,
): AsyncGenerator<FormPart> {
  const reader = new DelimitedReader(pieces);
  try {
    await shortText(reader.until(encoder.encode(`--${boundary}`)), MAX_HEAD_BYTES);
    for (;;) {
      const mark = new TextDecoder().decode(await reader.take(2));
      if (mark === '--') return;
      if (mark !== '\r\n') throw malformed('a boundary is not followed by a line break');
      const head = await shortText(reader.until(encoder.encode('\r\n\r\n')), MAX_HEAD_BYTES);
      const content = reader.until(encoder.encode(`\r\n--${boundary}`));
      yield { ...dispositionOf(head), content };
      // What the caller has not read.
      for await (const _ of content);
    }
  } finally {
    await reader.close();
  }
}

function dispositionOf(head: string): Pick<FormPart, 'name' | 'filename'> {
  const line = /^content-disposition:\s*form-data\s*(;.*)$/im.exec(head)?.[1] ?? '';
  const parameter = (key: string): string | null => {
    const [, quoted, plain] =
      new RegExp(`;\\s*${key}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s";]+))`, 'i').exec(line) ?? [];
    return quoted?.replace(/\\(["\\])/g, '$1').replaceAll('%22', '"') ?? plain ?? null;
  };
  const name = parameter('name');
  if (name === null) throw malformed('a part has no name');
  return { name, filename: parameter('filename') };
}
