import { errorMessage } from '@continuo/shared/error-details.ts';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { Terminal } from './terminal.ts';

/** What every command has in common: options, help, errors and exit codes. */

export const EXIT = { failed: 1, usage: 2, unreachable: 3 } as const;

const EXIT_HELP = `
Exit codes: 0 success, 1 the command failed, 2 wrong options or arguments, 3 no connection to the server.`;

/** A failure that the user can act on, shown as one line. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

class RequiredOption extends Option {}

/** Adds an option that must be given. All missing ones are reported together. */
export function requireOption(
  command: Command,
  flags: string,
  description: string,
  parse: (text: string) => unknown = (text) => text,
): Command {
  return command.addOption(new RequiredOption(flags, `${description} (required)`).argParser(parse));
}

function refuseMissingOptions(command: Command): void {
  const missing = command.options.filter(
    (option) =>
      option instanceof RequiredOption && command.getOptionValue(option.attributeName()) === undefined,
  );
  if (missing.length === 0) return;
  const names = missing.map(({ flags }) => flags).join(', ');
  command.error(`error: missing required option${missing.length > 1 ? 's' : ''}: ${names}`);
}

/** Creates the root of a tree of commands. Subcommands inherit its output, help and options. */
export function createProgram(name: string, description: string, terminal: Terminal): Command {
  return new Command(name)
    .description(description)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, `${name}: `)),
    })
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Add --help for options and examples.')
    .addHelpText('after', EXIT_HELP)
    .hook('preAction', (_, action) => refuseMissingOptions(action));
}

/** Adds command lines to the end of a command's help. */
export const withExamples = (command: Command, ...lines: readonly string[]): Command =>
  command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`);

/**
 * Runs a command line and reports failures on stderr.
 * @param words the arguments, without program and script
 * @returns the exit code
 */
export async function runProgram(
  program: Command,
  words: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    await program.parseAsync(words, { from: 'user' });
    return 0;
  } catch (thrown) {
    // Commander has printed its message.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : EXIT.usage;
    terminal.note(`${program.name()}: ${errorMessage(thrown)}`);
    return thrown instanceof CommandError ? thrown.exitCode : EXIT.failed;
  }
}

/** Returns a parser of whole numbers of at least `least`. */
export const whole =
  (least: number, most = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const end = most === Number.MAX_SAFE_INTEGER ? '' : ` and at most ${most}`;
    throw new InvalidArgumentError(`Expected a whole number of at least ${least}${end}.`);
  };

/** `a,b` → ['a', 'b'] */
export const commaList = (text: string): string[] => text.split(',').map((part) => part.trim());
