import { existsSync, statSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { whole } from '../../../origin/terminal/program.ts';
import type { TokenCounts } from './plan.ts';

/** Parsers of the benchmarks' options. They reject a wrong value before anything runs. */

export { whole };

export function aboveZero(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number above 0.');
}

/** Parses a list such as `1,2,4`; `read` parses each part. */
export const list =
  <T>(read: (text: string) => T) =>
  (text: string): T[] =>
    text.split(',').map((part) => read(part.trim()));

export const oneOf =
  (names: readonly string[]) =>
  (text: string): string => {
    if (names.includes(text)) return text;
    throw new InvalidArgumentError(`'${text}' is none of ${names.join(', ')}.`);
  };

/** Parses the name of a benchmark model or the path of a directory. */
export const modelOrDirectory =
  (names: readonly string[]) =>
  (text: string): string => {
    if (names.includes(text) || existsSync(text)) return text;
    throw new InvalidArgumentError(`'${text}' is neither a directory nor one of ${names.join(', ')}.`);
  };

/** Adds a header such as `name: value` to those before it. */
export function header(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, value] = /^([\w-]+): *(\S.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("Expected 'name: value'.");
  return { ...before, [name]: value };
}

export function directory(text: string): string {
  if (statSync(text, { throwIfNoEntry: false })?.isDirectory()) return text;
  throw new InvalidArgumentError(`'${text}' is not a directory.`);
}

/** Parses a base URL and removes its trailing slash. */
export function address(text: string): string {
  if (['http:', 'https:'].includes(URL.parse(text)?.protocol ?? '')) return text.replace(/\/+$/, '');
  throw new InvalidArgumentError('Expected an address such as http://127.0.0.1:8080/v1.');
}

/** Parses the tokens of a prompt and of its answer, such as `155/96`. */
export function tokenCounts(text: string): TokenCounts {
  const [promptTokens = 0, tokens = 0] = text.split('/').map(Number);
  if (/^[1-9]\d*\/[1-9]\d*$/.test(text)) return { promptTokens, tokens };
  throw new InvalidArgumentError(`'${text}' is no pair of numbers such as 155/96.`);
}
