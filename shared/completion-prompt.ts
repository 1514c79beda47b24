import * as z from 'zod';
import { ApiError, counted } from './errors.ts';
import type { WirePrompt } from './generation.ts';
import { type Fault, integer, kindOf, MAX_INT32, type ReadResult, required } from './json-fields.ts';

/** All forms of `prompt`; `readPrompts` explains their meaning. */
const parts = z.array(z.union([integer(0), z.string()]));
const documented = z.union([z.string(), parts, z.array(z.union([z.string(), parts])), z.null()]);

const nameOf = (field: string, path: readonly number[]): string =>
  `${field}${path.map((index) => `[${index}]`).join('')}`;

function tokenFault(value: unknown, path: readonly number[], field = 'prompt'): Fault | null {
  if (typeof value === 'string') return null;
  const name = `'${nameOf(field, path)}'`;
  if (typeof value !== 'number') {
    return {
      code: 'invalid_type',
      message: `Invalid type for ${name}: expected a string or a token id, but got ${kindOf(value)} instead.`,
      path,
    };
  }
  if (!Number.isInteger(value)) {
    const message = `Invalid type for ${name}: expected an integer token id, but got ${value} instead.`;
    return { code: 'invalid_type', message, path };
  }
  if (value < 0) {
    const message = `Invalid ${name}: integer below minimum value. Expected a value >= 0, but got ${value} instead.`;
    return { code: 'integer_below_min_value', message, path };
  }
  if (value > MAX_INT32) {
    const message = `Invalid ${name}: integer above maximum value. Expected a value <= ${MAX_INT32}, but got ${value} instead.`;
    return { code: 'integer_above_max_value', message, path };
  }
  return null;
}

/** Reads one prompt of ids, strings or both. */
function readParts(
  parts: readonly unknown[],
  path: readonly number[],
  field = 'prompt',
): ReadResult<WirePrompt> {
  if (parts.length === 0) {
    const message = `Invalid '${nameOf(field, path)}': empty array. Expected at least one token.`;
    return { fault: { code: 'empty_array', message, path } };
  }
  for (const [index, part] of parts.entries()) {
    const fault = tokenFault(part, [...path, index], field);
    if (fault) return { fault };
  }
  return { value: parts as (string | number)[] };
}

/**
 * A string is one prompt. An array of strings is many prompts. A flat array with any number is one prompt of
 * ids, or of ids and strings to be joined. An array that contains arrays is many prompts, each a string or
 * such an array. An empty array in it is an empty prompt.
 */
function readPrompts(value: unknown): ReadResult<WirePrompt[]> {
  if (typeof value === 'string') return { value: [value] };
  if (!Array.isArray(value)) {
    const message = `Invalid type for 'prompt': expected a string or an array of strings or token ids, but got ${kindOf(value)} instead.`;
    return { fault: { code: 'invalid_type', message } };
  }
  if (value.some((part) => typeof part === 'number')) {
    const prompt = readParts(value, []);
    return 'fault' in prompt ? prompt : { value: [prompt.value] };
  }
  const prompts: WirePrompt[] = [];
  for (const [index, part] of value.entries()) {
    if (!Array.isArray(part)) {
      const fault = tokenFault(part, [index]);
      if (fault) return { fault };
      prompts.push(part as string);
      continue;
    }
    const prompt: ReadResult<WirePrompt> = part.length === 0 ? { value: '' } : readParts(part, [index]);
    if ('fault' in prompt) return prompt;
    prompts.push(prompt.value);
  }
  return { value: prompts };
}

/** OpenAI's documents: null is a new document. So is a list of nothing. */
export const emptyAsText = (value: unknown): unknown =>
  value === null || (Array.isArray(value) && value.length === 0) ? '' : value;

/** Converts every form of `prompt` to a list of prompts. Checks arrays in one pass, up to the first fault. */
export const promptField = z.preprocess(emptyAsText, required('prompt', documented, readPrompts));

/**
 * Reads a text, or a list of token ids. Unlike a schema, it checks a million ids in milliseconds.
 * @param path of the value below `field`, for messages
 */
export function readTextOrIds(
  value: unknown,
  field: string,
  path: readonly number[] = [],
): ReadResult<string | number[]> {
  if (typeof value === 'string') return { value };
  const expected = (got: string) =>
    `Invalid type for '${nameOf(field, path)}': expected a string or an array of token ids, but got ${got} instead.`;
  if (!Array.isArray(value)) {
    return { fault: { code: 'invalid_type', message: expected(kindOf(value)), path } };
  }
  const text = value.findIndex((part) => typeof part === 'string');
  if (text >= 0) {
    const message = expected(`a string at '${nameOf(field, [...path, text])}'`);
    return { fault: { code: 'invalid_type', message, path: [...path, text] } };
  }
  return readParts(value, path, field) as ReadResult<number[]>;
}

/** Mark for an image in a prompt, the same for all models. */
export const IMAGE_MARK = '<image>';

/** Start of an image in a request: `data:image/jpeg;base64,`. `data:` and `;base64` are optional. */
const HEAD = /^(?:data:)?image\/[\w.+-]+(?:;[\w.+=-]+)*,/i;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Returns the image's bytes as base64, or a fault that completes "Invalid 'images[0]': …". */
export function imageBase64(image: string): { readonly base64: string } | { readonly fault: string } {
  if (/^https?:/i.test(image)) {
    return { fault: 'image URLs are not supported. Send the image itself as data:image/jpeg;base64,…' };
  }
  const head = HEAD.exec(image)?.[0];
  if (head === undefined) return { fault: 'expected data:image/jpeg;base64,… or another image type' };
  const base64 = image.slice(head.length);
  const fits =
    BASE64.test(base64) && (base64.endsWith('=') ? base64.length % 4 === 0 : base64.length % 4 !== 1);
  return fits ? { base64 } : { fault: 'the text after the comma is not base64' };
}

export function wrongImageCount(images: number, marks: number, param = 'images'): ApiError {
  const asText = marks > images ? " Send 'parse_special': false to take the spelling of marks as text." : '';
  const message = `Invalid '${param}': got ${counted(images, 'image')}, but the prompt has ${counted(marks, `'${IMAGE_MARK}' mark`)}.${asText}`;
  return new ApiError('invalid_value', message, { param });
}

/** @param fault why the image is invalid, without a full stop */
export function invalidImage(index: number, fault: string): ApiError {
  const param = `images[${index}]`;
  return new ApiError('invalid_value', `Invalid '${param}': ${fault}.`, { param });
}
