import { type Connection, send } from '../api/client.ts';
import { RequestFailure } from '../api/request-failure.ts';
import { type ConstraintField, constraintValue } from './constraint-kinds.ts';

export type Verdict = 'valid' | { readonly error: string } | { readonly unchecked: string };

/**
 * Returns whether the server accepts a constraint, with the server's message if not. The request generates
 * nothing.
 * @throws the signal's reason if it is aborted
 */
export async function checkConstraint(
  connection: Connection,
  model: string,
  field: ConstraintField,
  source: string,
  signal: AbortSignal,
): Promise<Verdict> {
  try {
    const body = { model, prompt: ' ', max_tokens: 0, [field]: constraintValue(field, source) };
    await send(connection, '/v1/completions', { body, signal });
    return 'valid';
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof SyntaxError) return { error: jsonError(source, thrown.message) };
    if (thrown instanceof RequestFailure && thrown.kind === 'invalid-request')
      return { error: thrown.message };
    return { unchecked: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

const UNEXPECTED_TOKEN = /^Unexpected token '.+is not valid JSON$/su;

/** Names line and column as the server does, if the browser's message has a place. */
export function jsonError(source: string, message: string): string {
  const [, line, column] = /at line (\d+) column (\d+)/.exec(message) ?? [];
  const text = message.replace(/ (in JSON )?at (position \d|line \d+ column \d).*$/, '');
  if (line !== undefined) return `${text} at line ${line}, column ${column}`;
  const position = positionOf(source, message);
  if (position === null) return text;
  const before = source.slice(0, position).split('\n');
  return `${text} at line ${before.length}, column ${before.at(-1)!.length + 1}`;
}

function positionOf(source: string, message: string): number | null {
  const named = /at position (\d+)/.exec(message)?.[1];
  if (named !== undefined) return Number(named);
  if (/end of (JSON|data|file)/i.test(message)) return source.length;
  return UNEXPECTED_TOKEN.test(message) ? unexpectedAt(source) : null;
}

/**
 * Chromium names an unexpected token without its position. The shortest beginning of the source with that
 * fault ends with the token.
 */
function unexpectedAt(source: string): number | null {
  let [low, high] = [0, source.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (hasUnexpected(source.slice(0, middle + 1))) high = middle;
    else low = middle + 1;
  }
  return low === source.length ? null : low;
}

function hasUnexpected(source: string): boolean {
  try {
    JSON.parse(source);
    return false;
  } catch (thrown) {
    return UNEXPECTED_TOKEN.test((thrown as Error).message);
  }
}
