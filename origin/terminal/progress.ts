import { type Options, SingleBar } from 'cli-progress';
import type { OutputStream } from './terminal.ts';

export interface FileProgress {
  update(receivedBytes: number): void;
  stop(): void;
}

/** Shows downloads on the standard error stream. */
export interface ProgressDisplay {
  start(file: string, totalBytes: number): FileProgress;
  /** Prints a line that is not progress, such as a lost connection. */
  note(line: string): void;
}

const CLEAR_LINE = '\r\u001b[K';
/** Outside a terminal, files of this size get a line per 10 %, smaller files one line. */
const LARGE_FILE_BYTES = 50e6;

/** Shows a bar on a terminal and plain lines elsewhere. */
export function createProgress(
  stream: OutputStream,
  now: () => number = () => performance.now(),
): ProgressDisplay {
  const isTerminal = stream.isTTY === true;
  // A bar may occupy the current line of a terminal.
  const note = (line: string): void => void stream.write(`${isTerminal ? CLEAR_LINE : ''}${line}\n`);
  const start = (file: string, total: number) =>
    isTerminal ? startBar(stream, file, total, now) : startLines(note, file, total);
  return { start, note };
}

/** A bar that leaves cursor and line wrapping of the terminal as they are: Ctrl-C needs no cleanup. */
export const createBar = (options: Options): SingleBar =>
  new SingleBar({ barsize: 30, ...options, linewrap: true });

function startBar(stream: OutputStream, file: string, total: number, now: () => number): FileProgress {
  const bar = createBar({
    format: '{file} [{bar}] {percentage} % of {total}, {rate}/s, {eta_formatted} left',
    stream,
    formatValue: (value, _options, type) => (type === 'total' ? byteSize(value) : String(value)),
  });
  bar.start(total, 0, { file, rate: byteSize(0) });
  let first: { readonly bytes: number; readonly at: number } | null = null;
  return {
    update(received) {
      // Bytes of an earlier run are not part of the rate.
      first ??= { bytes: received, at: now() };
      const seconds = (now() - first.at) / 1000;
      const rate = seconds === 0 ? 0 : (received - first.bytes) / seconds;
      bar.update(received, { rate: byteSize(Math.max(0, rate)) });
    },
    stop: () => bar.stop(),
  };
}

function startLines(note: (line: string) => void, file: string, total: number): FileProgress {
  note(`${file} ${byteSize(total)}`);
  let previous: number | null = null;
  return {
    update(received) {
      const tenths = Math.floor((10 * received) / total);
      if (total >= LARGE_FILE_BYTES && previous !== null && tenths > previous)
        note(`${file} ${tenths * 10} %`);
      previous = tenths;
    },
    stop: () => undefined,
  };
}

const UNITS = ['kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** Formats a size with three digits and a decimal unit: "12.3 MB". */
export function byteSize(bytes: number): string {
  let value = bytes;
  let unit = 'B';
  for (const larger of UNITS) {
    if (value < 999.5) break;
    value /= 1000;
    unit = larger;
  }
  const digits = unit === 'B' || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${unit}`;
}
