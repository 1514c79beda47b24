import * as z from 'zod';
import type { WirePrompt } from './generation.ts';
import { DOCUMENTED_AS, type Fault, integer, kindOf, MAX_INT32, report } from './json-fields.ts';

/** All forms of `prompt`; `readPrompts` explains their meaning. */
const parts = z.array(z.union([integer(0), z.string()])).min(1);
const documented = z.union([z.string(), parts, z.array(z.union([z.string(), parts])).min(1)]);

type ReadResult<T> = { readonly value: T } | { readonly fault: Fault };

function tokenFault(value: unknown, path: readonly number[]): Fault | null {
  if (typeof value === 'string') return null;
  const name = `'prompt${path.map((index) => `[${index}]`).join('')}'`;
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
function readParts(parts: readonly unknown[], path: readonly number[]): ReadResult<WirePrompt> {
  if (parts.length === 0) {
    const name = `prompt${path.map((index) => `[${index}]`).join('')}`;
    return {
      fault: {
        code: 'empty_array',
        message: `Invalid '${name}': empty array. Expected at least one token.`,
        path,
      },
    };
  }
  for (const [index, part] of parts.entries()) {
    const fault = tokenFault(part, [...path, index]);
    if (fault) return { fault };
  }
  return { value: parts as (string | number)[] };
}

/**
 * A string is one prompt. An array of strings is many prompts. A flat array with any number is one prompt of ids, or of
 * ids and strings to be joined. An array that contains arrays is many prompts, each a string or such an array.
 */
function readPrompts(value: unknown): ReadResult<WirePrompt[]> {
  if (typeof value === 'string') return { value: [value] };
  if (!Array.isArray(value)) {
    const message = `Invalid type for 'prompt': expected a string or an array of strings or token ids, but got ${kindOf(value)} instead.`;
    return { fault: { code: 'invalid_type', message } };
  }
  if (value.some((part) => typeof part === 'number')) {
    const one = readParts(value, []);
    return 'fault' in one ? one : { value: [one.value] };
  }
  if (value.length === 0)
    return {
      fault: { code: 'empty_array', message: "Invalid 'prompt': empty array. Expected at least one prompt." },
    };
  const prompts: WirePrompt[] = [];
  for (const [index, part] of value.entries()) {
    if (!Array.isArray(part)) {
      const fault = tokenFault(part, [index]);
      if (fault) return { fault };
      prompts.push(part as string);
      continue;
    }
    const one = readParts(part, [index]);
    if ('fault' in one) return one;
    prompts.push(one.value);
  }
  return { value: prompts };
}

/** Converts every form of `prompt` to a list of prompts. Checks arrays in one pass, up to the first fault. */
export const promptField = z
  .unknown()
  .transform((value, context): WirePrompt[] => {
    if (value === undefined || value === null) {
      report(context, {
        code: 'missing_required_parameter',
        message: "Missing required parameter: 'prompt'.",
      });
      return z.NEVER;
    }
    const result = readPrompts(value);
    if ('value' in result) return result.value;
    report(context, result.fault);
    return z.NEVER;
  })
  .meta({ [DOCUMENTED_AS]: documented });
