import type { BatchEndpoint } from '@continuo/shared/batch.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { parseWithDigits } from '@continuo/shared/exact-numbers.ts';
import { joinedBytes } from '@continuo/shared/framing.ts';
import { isJsonObject, type JsonObject } from '@continuo/shared/json-object.ts';

/** Reads the lines of a batch's input file. */

/** A line of the file. Lines are numbered from 1. */
interface RawLine {
  readonly number: number;
  /** Null if it is longer than the limit. */
  readonly bytes: Uint8Array | null;
}

const LINE_FEED = 0x0a;

/** Splits a byte stream at line feeds. Yields completed lines; holds at most one line. */
export async function* linesOf(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<readonly RawLine[]> {
  let number = 0;
  let held: Uint8Array[] = [];
  let size = 0;
  const take = (bytes: Uint8Array): void => {
    size += bytes.length;
    if (size <= maxBytes) held.push(bytes);
    else held = [];
  };
  const end = (): RawLine => {
    const line = { number: ++number, bytes: size > maxBytes ? null : joinedBytes(held) };
    held = [];
    size = 0;
    return line;
  };
  for await (const piece of pieces) {
    const lines: RawLine[] = [];
    let from = 0;
    for (let at = piece.indexOf(LINE_FEED); at >= 0; at = piece.indexOf(LINE_FEED, from)) {
      take(piece.subarray(from, at));
      lines.push(end());
      from = at + 1;
    }
    if (from < piece.length) take(piece.slice(from));
    yield lines;
  }
  if (size > 0) yield [end()];
}

/** Why a line cannot run. It goes to the error file. */
export interface LineFault {
  readonly code: string;
  readonly message: string;
}

export interface InputLine {
  /** Null if the line has none. */
  readonly customId: string | null;
  /** The body of the request, or why there is none. */
  readonly request: string | LineFault;
  /** The beginning of the prompt. Lines with the same one run next to each other. */
  readonly beginning: string;
}

const MAX_ID_LENGTH = 512;
const BEGINNING_LENGTH = 256;

/** Reads a line; null for a blank one. */
export function readLine(text: string, endpoint: BatchEndpoint): InputLine | null {
  if (text.trim() === '') return null;
  let line: unknown;
  try {
    line = parseWithDigits(text);
  } catch (thrown) {
    return faulty(null, 'invalid_json', `The line is not JSON: ${errorMessage(thrown)}.`);
  }
  if (!isJsonObject(line)) return faulty(null, 'invalid_type', 'The line is not a JSON object.');
  const { custom_id: id, method, url, body } = line;
  if (typeof id !== 'string' || id === '' || [...id].length > MAX_ID_LENGTH || !id.isWellFormed()) {
    const message = `Invalid 'custom_id': expected a string of 1 to ${MAX_ID_LENGTH} characters.`;
    return faulty(null, 'invalid_value', message);
  }
  if (method !== 'POST') return faulty(id, 'invalid_value', "Invalid 'method': expected 'POST'.");
  if (url !== endpoint) {
    return faulty(id, 'invalid_value', `Invalid 'url': expected '${endpoint}', the endpoint of the batch.`);
  }
  if (!isJsonObject(body)) return faulty(id, 'invalid_type', "Invalid type for 'body': expected an object.");
  if (body.stream === true) {
    return faulty(id, 'invalid_value', "Invalid 'body.stream': a batch has no streams. Remove the field.");
  }
  try {
    return { customId: id, request: JSON.stringify(body), beginning: beginningOf(body) };
  } catch {
    return faulty(id, 'invalid_value', "Invalid 'body': it is nested too deeply.");
  }
}

const faulty = (customId: string | null, code: string, message: string): InputLine => ({
  customId,
  request: { code, message },
  beginning: '',
});

function beginningOf({ prompt, query }: JsonObject): string {
  const text = prompt ?? query ?? '';
  return (typeof text === 'string' ? text : JSON.stringify(text)).slice(0, BEGINNING_LENGTH);
}
