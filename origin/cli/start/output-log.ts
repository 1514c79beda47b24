import { appendFileSync, writeFileSync } from 'node:fs';

/** Characters of the end that is kept in memory. */
const TAIL = 16_384;
const MAX_LINES = 5;

/** Keeps the output of a process in a file. A full disk loses lines; the process runs on. */
export class OutputLog {
  readonly #file: string;
  #tail = '';

  constructor(file: string) {
    this.#file = file;
    writeFileSync(file, '');
  }

  append(text: string): void {
    this.#tail = (this.#tail + text).slice(-TAIL);
    try {
      appendFileSync(this.#file, text);
    } catch {
      // The next lines may find room.
    }
  }

  /** Returns the last lines, without workerd's stack addresses. */
  lastLines(): string {
    const lines = this.#tail.trim().split('\n');
    const told = lines.filter((line) => !line.startsWith('stack: '));
    // The origin's last line repeats what its structured log says.
    const plain = told.filter((line) => !line.startsWith('{'));
    return (plain.length > 0 ? plain : told).slice(-MAX_LINES).join('\n');
  }
}
