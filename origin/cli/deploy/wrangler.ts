import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Environment } from '@continuo/origin/config/environment.ts';
import { CommandError } from '@continuo/origin/terminal/program.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';

/** A failed run of wrangler, with what it has printed. */
export class WranglerError extends CommandError {
  readonly output: string;

  constructor(words: readonly string[], output: string) {
    super(`wrangler ${words.join(' ')} failed:\n${output.trim()}`);
    this.output = output;
  }
}

/** Runs wrangler in the checkout and returns its standard output. @throws WranglerError */
export type Wrangler = (words: readonly string[], variables?: Environment) => Promise<string>;

/** @param environment the variables; PATH finds wrangler, as npm sets it */
export const wranglerIn =
  (cwd: string, environment: Environment): Wrangler =>
  async (words, variables = {}) => {
    const child = spawn('wrangler', words, {
      cwd,
      // CI: it asks nothing, and leaves wrangler.toml as it is.
      env: { ...environment, ...variables, CI: 'true', WRANGLER_SEND_METRICS: 'false' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = (once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>).catch(
      (error: unknown) => {
        throw new WranglerError(words, errorMessage(error));
      },
    );
    const [stdout, stderr, [code, signal]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      ended,
    ]);
    if (code !== 0) throw new WranglerError(words, `${stderr}${stdout}${signal ? `\n${signal}` : ''}`);
    return stdout;
  };
