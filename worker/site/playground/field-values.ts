import type { RequestField } from '../api/request-field.ts';

/** Converts between what a visitor writes and the value of a request field. */

export type ReadValue =
  | { readonly value: unknown }
  | { readonly fault: string /** The nearest value. */; readonly allowed?: number };

/** Lines hold texts, so a line break within one is written `\n`. */
const ESCAPES: readonly (readonly [RegExp, string])[] = [
  [/\\/g, '\\\\'],
  [/\n/g, '\\n'],
  [/\t/g, '\\t'],
  [/\r/g, '\\r'],
];
const escaped = (text: string): string =>
  ESCAPES.reduce((result, [sign, written]) => result.replace(sign, () => written), text);
const SIGNS: Readonly<Record<string, string>> = { '\\n': '\n', '\\t': '\t', '\\r': '\r', '\\\\': '\\' };
const unescaped = (line: string): string => line.replace(/\\[ntr\\]/g, (sign) => SIGNS[sign]!);

/** Returns a value as the visitor writes it; '' for an absent value. */
export function writeValue(kind: RequestField['kind'], value: unknown): string {
  if (value === undefined || value === null) return '';
  if (kind === 'texts') return [value].flat().map(String).map(escaped).join('\n');
  if (kind === 'ids') return [value].flat().join(', ');
  return kind === 'json' || typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value);
}

/** Reads a value; undefined if nothing is written, so that the field is not sent. */
export function readValue(field: RequestField, written: string): ReadValue {
  if (field.kind === 'text') return { value: written === '' ? undefined : written };
  // A line of spaces is a text: a completion may end at the first space.
  if (field.kind === 'texts') {
    const lines = written.split('\n').filter((line) => line !== '');
    return { value: lines.length === 0 ? undefined : lines.map(unescaped) };
  }
  if (written.trim() === '') return { value: undefined };
  switch (field.kind) {
    case 'number':
    case 'integer':
      return readNumber(field, written);
    case 'ids':
      return readIds(written);
    case 'json':
      return readJson(written);
    default:
      return { value: written };
  }
}

function readNumber({ kind, minimum, maximum }: RequestField, written: string): ReadValue {
  const value = Number(written);
  if (!Number.isFinite(value)) return { fault: `${written.trim()} is not a number.` };
  if (kind === 'integer' && !Number.isInteger(value)) return { fault: 'A whole number is needed.' };
  if (minimum !== undefined && value < minimum) return { fault: `At least ${minimum}.`, allowed: minimum };
  if (maximum !== undefined && value > maximum) return { fault: `At most ${maximum}.`, allowed: maximum };
  return { value };
}

function readIds(written: string): ReadValue {
  const parts = written.split(/[\s,]+/).filter((part) => part !== '');
  const wrong = parts.find((part) => !/^\d+$/.test(part));
  return wrong === undefined ? { value: parts.map(Number) } : { fault: `${wrong} is not a token id.` };
}

const TEXT = /"(?:[^"\\]|\\.)*"/g;

function readJson(written: string): ReadValue {
  try {
    const value: unknown = JSON.parse(written);
    const integers = written.replace(TEXT, '').match(/(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g) ?? [];
    const rounded = integers.find((digits) => String(Number(digits)) !== digits);
    if (rounded === undefined) return { value };
    return { fault: `${rounded} would be rounded. A schema under Constraint keeps all digits.` };
  } catch (thrown) {
    return { fault: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}
