import type { BatchEndpoint, BatchFault } from '@continuo/shared/batch.ts';
import { type InputLine, linesOf, readLine } from './input-lines.ts';

const MAX_LINES = 50_000;

/** The input file of a batch cannot be used. */
export class InputRefusal extends Error {
  readonly fault: BatchFault;

  constructor(code: string, line: number | null, message: string) {
    super(message);
    this.name = 'InputRefusal';
    const where = line === null ? 'Invalid input file' : `Invalid input file: line ${line}`;
    this.fault = { code, line, param: 'input_file_id', message: `${where} ${message}.` };
  }
}

/** Receives the lines of a file. */
interface LineReceiver {
  /** Returns the number of the line that has this id; null if there is none. */
  lineOf(customId: string): number | null;
  add(number: number, line: InputLine): void;
}

/**
 * Reads an input file.
 * @param maxBytes of a line
 * @param isOver stops the reading
 * @throws InputRefusal for the first line that makes the file invalid
 */
export async function readInput(
  object: R2ObjectBody | null,
  endpoint: BatchEndpoint,
  maxBytes: number,
  isOver: () => boolean,
  to: LineReceiver,
): Promise<void> {
  if (object === null) throw new InputRefusal('not_found', null, ': it has been deleted');
  let count = 0;
  for await (const lines of linesOf(object.body, maxBytes)) {
    if (isOver()) return;
    for (const { number, bytes } of lines) {
      const line = bytes === null ? tooLong(maxBytes) : readLine(textOf(bytes, number), endpoint);
      if (line === null) continue;
      count += 1;
      if (count > MAX_LINES)
        throw new InputRefusal('too_many_lines', number, `exceeds the limit of ${MAX_LINES} lines`);
      const first = line.customId === null ? null : to.lineOf(line.customId);
      if (first !== null) {
        const message = `has the same custom_id as line ${first}: ${JSON.stringify(line.customId!.slice(0, 80))}`;
        throw new InputRefusal('duplicate_custom_id', number, message);
      }
      to.add(number, line);
    }
  }
  if (count === 0) throw new InputRefusal('empty_file', 1, 'is the end of the file: there are no requests');
}

const tooLong = (maxBytes: number): InputLine => ({
  customId: null,
  request: { code: 'request_too_large', message: `The line is longer than ${maxBytes} bytes.` },
  beginning: '',
});

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

function textOf(bytes: Uint8Array, number: number): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new InputRefusal('invalid_encoding', number, 'is not valid UTF-8');
  }
}
