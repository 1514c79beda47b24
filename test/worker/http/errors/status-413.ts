import { type ErrorCase, sending } from './case.ts';

const LARGE = 2 * 1_024 * 1_024 + 1;
const body = (): string => `"${'x'.repeat(LARGE - 2)}"`;

/** The same body without a content-length. */
const chunked = (): ReadableStream<Uint8Array> => new Blob([body()]).stream();

const row = (name: string, make: () => string | ReadableStream<Uint8Array>): ErrorCase => ({
  name,
  send: sending(make),
  type: 'invalid_request_error',
  code: 'request_too_large',
  param: null,
  message: /larger than the limit of 2097152 bytes/,
});

export const STATUS_413: readonly ErrorCase[] = [
  row('a body above 2 MiB', body),
  row('a body above 2 MiB that does not say so', chunked),
];
