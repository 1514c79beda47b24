import { styleText } from 'node:util';

export type Color = 'green' | 'yellow' | 'magenta' | 'red';

export interface OutputStream extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  /** Respects NO_COLOR and TERM; absent on streams that are not terminals. */
  hasColors?(): boolean;
}

interface InputStream extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean;
}

interface Streams {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

/** The standard streams of a command: results go to stdout, everything else to stderr. */
export class Terminal {
  readonly stdin: InputStream;
  readonly stderr: OutputStream;
  readonly #stdout: OutputStream;

  constructor({ stdin, stdout, stderr }: Streams) {
    this.stdin = stdin;
    this.stderr = stderr;
    this.#stdout = stdout;
  }

  /** True if a person reads stdout, false in a pipe or a file. */
  get isInteractive(): boolean {
    return this.#stdout.isTTY === true;
  }

  get hasColor(): boolean {
    return this.isInteractive && this.#stdout.hasColors?.() !== false;
  }

  /** True if a person sees progress bars, which go to stderr. */
  get showsProgress(): boolean {
    return this.stderr.isTTY === true;
  }

  /** Writes a result as it is. */
  write(text: string): void {
    this.#stdout.write(text);
  }

  /** Writes a result on a line of its own. */
  print(text: string): void {
    this.write(`${text}\n`);
  }

  /** Writes a line that is not a result. */
  note(text: string): void {
    this.stderr.write(`${text}\n`);
  }

  /** Returns the text in a color if stdout shows colors. */
  paint(color: Color, text: string): string {
    return this.hasColor ? styleText(color, text, { validateStream: false }) : text;
  }
}

/** This process's streams. Ends it if the reader of stdout is gone, as in `continuo models | head -1`. */
export function processTerminal(): Terminal {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(141);
  });
  return new Terminal(process);
}
