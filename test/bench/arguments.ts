import { existsSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';

/** What the options of the benches may be: a wrong one is told before anything runs. */

/** A whole number that is not below `least`. */
export const whole =
  (least: number) =>
  (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw new InvalidArgumentError(`Expected a whole number of at least ${least}.`);
  };

export function aboveZero(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number above 0.');
}

/** `1,2,4`, each part read by `read`. */
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

/** The name of a model that can be made, or a directory. */
export const modelOrDirectory =
  (names: readonly string[]) =>
  (text: string): string => {
    if (names.includes(text) || existsSync(text)) return text;
    throw new InvalidArgumentError(`'${text}' is neither a directory nor one of ${names.join(', ')}.`);
  };

/** A base address, without the slash that may end it. */
export function address(text: string): string {
  if (['http:', 'https:'].includes(URL.parse(text)?.protocol ?? '')) return text.replace(/\/+$/, '');
  throw new InvalidArgumentError('Expected an address such as http://127.0.0.1:8080/v1.');
}
