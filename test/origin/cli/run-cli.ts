import { Readable, Writable } from 'node:stream';
import { createContinuo } from '../../../origin/cli/program.ts';
import { runProgram } from '../../../origin/terminal/program.ts';
import { Terminal } from '../../../origin/terminal/terminal.ts';

export interface CliRun {
  readonly environment?: Readonly<Record<string, string>>;
  /** What a pipe sends; absent = a keyboard. */
  readonly stdin?: string | Uint8Array;
  /** What stdout is: a terminal, or by default a pipe. */
  readonly terminal?: { readonly hasColors: boolean };
  readonly fetch?: typeof fetch;
  /** Called with each write to stdout. */
  readonly onWrite?: (text: string) => void;
}

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `continuo …` in this process. */
export async function runCli(words: readonly string[], run: CliRun = {}): Promise<CliResult> {
  const written = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr', onWrite: (text: string) => void = () => {}) =>
    new Writable({
      write(chunk, _encoding, done) {
        written[name] += String(chunk);
        onWrite(String(chunk));
        done();
      },
    });
  const { environment = {}, stdin, terminal: tty, onWrite, fetch: ask = fetch } = run;
  const isTTY = tty !== undefined;
  const terminal = new Terminal({
    stdin: Object.assign(Readable.from(stdin === undefined ? [] : [stdin]), { isTTY: stdin === undefined }),
    stdout: Object.assign(sink('stdout', onWrite), { isTTY, hasColors: () => tty?.hasColors ?? false }),
    stderr: Object.assign(sink('stderr'), { isTTY }),
  });
  const program = createContinuo({ terminal, environment, fetch: ask });
  return { code: await runProgram(program, words, terminal), ...written };
}
