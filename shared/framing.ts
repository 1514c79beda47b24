/** Encodes and incrementally decodes NDJSON and SSE. Works on text; the caller decodes UTF-8. */

/** One NDJSON line, newline included. */
export const ndjsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`;

/** JSON leaves these raw in strings, but readers of lines split there: `splitlines`, Node's `readline`. */
const LINE_SEPARATORS = /[\u0085\u2028\u2029]/g;

/** Escapes the line separators in JSON text, or in events that carry JSON. */
export const withoutLineSeparators = (json: string): string =>
  json.replace(LINE_SEPARATORS, (separator) => `\\u${separator.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Returns JSON for a client. */
export const clientJson = (value: unknown): string => withoutLineSeparators(JSON.stringify(value));

/** One SSE event carrying JSON. */
export const sseData = (value: unknown): string => `data: ${clientJson(value)}\n\n`;

export const SSE_DONE = 'data: [DONE]\n\n';
export const SSE_KEEP_ALIVE = ': keep-alive\n\n';

/** Splits text fragments into lines, or at blank lines; each may arrive in any number of fragments. */
export class LineDecoder {
  readonly #separator: '\n' | '\n\n';
  #pending = '';

  constructor(separator: '\n' | '\n\n' = '\n') {
    this.#separator = separator;
  }

  /** Returns the lines that `fragment` completes, without separators; empty lines are included. */
  push(fragment: string): string[] {
    // Searching all fragments of a long line again for each new one would take quadratic time.
    if (!fragment.includes('\n')) {
      this.#pending += fragment;
      return [];
    }
    const lines = (this.#pending + fragment).split(this.#separator);
    this.#pending = lines.pop() ?? '';
    return lines;
  }

  /** Characters of the unfinished line. */
  get pending(): number {
    return this.#pending.length;
  }

  /** Returns the unfinished line at the end of the stream, or ''. */
  end(): string {
    const rest = this.#pending;
    this.#pending = '';
    return rest;
  }
}

/** Collects the `data` payloads of an SSE stream; skips comments and other fields (WHATWG event streams). */
export class SseDecoder {
  readonly #lines = new LineDecoder();
  #data: string[] = [];
  /** Characters of the lines in `#data`, field names included. */
  #held = 0;

  /** Characters of the unfinished event. */
  get pending(): number {
    return this.#held + this.#lines.pending;
  }

  /** Returns the payloads of the events that `fragment` completes. */
  push(fragment: string): string[] {
    const payloads: string[] = [];
    for (const raw of this.#lines.push(fragment)) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (this.#data.length > 0) payloads.push(this.#data.join('\n'));
        this.#data = [];
        this.#held = 0;
      } else if (line.startsWith('data:')) {
        this.#held += line.length;
        this.#data.push(line.charAt(5) === ' ' ? line.slice(6) : line.slice(5));
      }
    }
    return payloads;
  }
}

/** Returns pieces of bytes as one; a single piece as it is. */
export function joinedBytes(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
