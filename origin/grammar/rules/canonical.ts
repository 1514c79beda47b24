import { isRawNumber } from '@continuo/shared/exact-numbers.ts';

/** A text that is equal for equal JSON values, whatever the order of their members. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (isRawNumber(value)) return value.rawJSON;
  if (typeof value !== 'object' || value === null) return value === 0 ? '0' : JSON.stringify(value);
  const members = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`);
  return `{${members.sort().join()}}`;
}
