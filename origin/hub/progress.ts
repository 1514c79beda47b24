import { SingleBar } from 'cli-progress';
import { byteSize } from './byte-size.ts';

/** What a user sees while files arrive. */

export interface FileProgress {
  update(receivedBytes: number): void;
  stop(): void;
}

export interface Progress {
  start(file: string, totalBytes: number): FileProgress;
  /** One line that is no progress: a wait, a lost connection. */
  note(line: string): void;
}

/** The part of a process's error stream that is used. */
export interface Terminal extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
}

const CLEAR_LINE = '\r\u001b[K';

/** A bar that moves on a terminal, plain lines elsewhere. */
export function createProgress(stream: Terminal): Progress {
  const terminal = stream.isTTY === true;
  // On a terminal the line may be that of a bar: it is cleared first.
  const note = (line: string): void => void stream.write(`${terminal ? CLEAR_LINE : ''}${line}\n`);
  const start: Progress['start'] = (file, total) =>
    terminal ? startBar(stream, file, total) : startLines(note, file, total);
  return { start, note };
}

/** A running bar hides the cursor and cuts long lines: whoever ends the process shall have the terminal back as it was. */
const ENDING = ['SIGINT', 'SIGTERM'] as const;

function startBar(stream: Terminal, file: string, total: number): FileProgress {
  const bar = new SingleBar({
    format: '{file} [{bar}] {percentage} % of {total}, {eta_formatted} left',
    stream,
    formatValue: (value, _options, type) => (type === 'total' ? byteSize(value) : String(value)),
    barsize: 30,
    hideCursor: true,
  });
  const stop = (): void => {
    for (const signal of ENDING) process.off(signal, stopAndEnd);
    bar.stop();
  };
  const stopAndEnd = (signal: NodeJS.Signals): void => {
    stop();
    process.kill(process.pid, signal);
  };
  for (const signal of ENDING) process.on(signal, stopAndEnd);
  bar.start(total, 0, { file });
  return { update: (received) => bar.update(received), stop };
}

/** Files below this size get one line, larger ones one per tenth as well. */
const LARGE_BYTES = 50e6;

function startLines(note: (line: string) => void, file: string, total: number): FileProgress {
  note(`${file} ${byteSize(total)}`);
  let tenths: number | null = null;
  return {
    update(received) {
      const now = Math.floor((10 * received) / total);
      if (total >= LARGE_BYTES && tenths !== null && now > tenths) note(`${file} ${now * 10} %`);
      tenths = now;
    },
    stop: () => undefined,
  };
}
