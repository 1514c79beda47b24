import type { IncomingMessage } from 'node:http';
import { ApiError } from '@continuo/shared/errors.ts';
import { withDigits } from '@continuo/shared/exact-numbers.ts';
import type * as z from 'zod';

const BODY_LIMIT = 8 * 2 ** 20;

/**
 * Returns the whole body as text. Bytes after the limit are read and dropped, because closing a connection
 * with unread bytes would also discard the answer. The server's request timeout bounds the time.
 * @throws ApiError 413 as soon as the body is known to exceed the limit
 */
export async function readBody(request: IncomingMessage, limit = BODY_LIMIT): Promise<string> {
  const body = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const refuse = () => {
    chunks.length = 0;
    body.reject(new ApiError('request_too_large', `The request body is larger than ${limit} bytes.`));
  };
  // The sender may have disconnected already.
  if (request.errored) body.reject(request.errored);
  request.on('error', body.reject);
  request.on('end', () => body.resolve(Buffer.concat(chunks)));
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > limit) refuse();
    else chunks.push(chunk);
  });
  if (Number(request.headers['content-length'] ?? 0) > limit) refuse();
  // The signature also covers a byte order mark.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await body.promise);
}

/**
 * Parses what the Worker sent. It has checked the caller's fields, so the caller is not at fault.
 * @param exact fields whose numbers keep their digits; see `withDigits`
 * @throws ApiError 502 protocol_mismatch, with the first path that does not match the schema
 */
export function parseBody<T>(body: string, schema: z.ZodType<T>, exact: readonly string[] = []): T {
  const value = parseJson(body);
  const isObject = typeof value === 'object' && value !== null;
  const parsed = schema.safeParse(isObject ? withDigits(value, body, exact) : value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.map(String).join('.') ?? '';
  throw mismatch(`Invalid '${path || 'body'}': ${issue?.message}.`, path || null);
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw mismatch('The request body is not valid JSON.', null);
  }
}

const mismatch = (message: string, param: string | null): ApiError =>
  new ApiError('protocol_mismatch', message, { param });
