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

/** Names line and column as the server does, if the browser's message has a place. */
export function jsonError(source: string, message: string): string {
  const [, line, column] = /at line (\d+) column (\d+)/.exec(message) ?? [];
  const text = message.replace(/ (in JSON )?at (position \d|line \d+ column \d).*$/, '');
  if (line !== undefined) return `${text} at line ${line}, column ${column}`;
  const position = /at position (\d+)/.exec(message)?.[1];
  if (position === undefined && !/end of (JSON|data|file)/i.test(message)) return text;
  const before = source.slice(0, Number(position ?? source.length)).split('\n');
  return `${text} at line ${before.length}, column ${before.at(-1)!.length + 1}`;
}
