/** A member `text` with a string as its value. */
const TEXT = /"text":\s*("(?:[^"\\]|\\.)*")/g;

/** Returns the string that JSON text stands for; null if it is not that of one string. */
function stringOf(json: string): string | null {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}

/**
 * What the chunks of a stream have in common. Usually that is all but their text, so a chunk need not be
 * parsed as a whole.
 */
export class RepeatedChunk {
  readonly choice: number;
  /** The JSON before and after the text's string. */
  readonly #head: string;
  readonly #tail: string;

  private constructor(choice: number, head: string, tail: string) {
    this.choice = choice;
    this.#head = head;
    this.#tail = tail;
  }

  /** Returns what a chunk repeats that has only this text; null if the place of the text is not certain. */
  static of(payload: string, { index, text }: { readonly index: number; readonly text: string }) {
    const [match, ...further] = payload.matchAll(TEXT);
    const json = match?.[1] ?? '';
    if (match === undefined || further.length > 0 || stringOf(json) !== text) return null;
    const end = match.index + match[0].length;
    return new RepeatedChunk(index, payload.slice(0, end - json.length), payload.slice(end));
  }

  /** Returns the text of a chunk that differs in nothing else; null for any other payload. */
  textOf(payload: string): string | null {
    const end = payload.length - this.#tail.length;
    if (!payload.startsWith(this.#head) || !payload.endsWith(this.#tail)) return null;
    return stringOf(payload.slice(this.#head.length, end));
  }
}
