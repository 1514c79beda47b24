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

/** Adds line and column to the browser's message, which names a position or nothing. */
function jsonError(source: string, message: string): string {
  const position = Number(/at position (\d+)/.exec(message)?.[1] ?? source.length);
  const before = source.slice(0, position).split('\n');
  const text = message.replace(/ (in JSON )?at position \d+.*$/, '');
  return `${text} at line ${before.length}, column ${before.at(-1)!.length + 1}`;
}
