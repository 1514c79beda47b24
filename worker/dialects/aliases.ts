import type { CompletionRequest } from '@continuo/shared/completion.ts';
import { conflicting } from './request-errors.ts';

type Field = keyof CompletionRequest & string;

/**
 * Returns the value of a field under any of its names; undefined if it is absent.
 * @throws ApiError 400 if two names have different values
 */
export function either<F extends Field>(request: CompletionRequest, ...names: readonly [F, ...F[]]) {
  let given: F | null = null;
  for (const name of names) {
    const value = request[name];
    if (value === undefined || value === null) continue;
    if (given !== null && request[given] !== value) throw conflicting(given, name);
    given ??= name;
  }
  return given === null ? undefined : (request[given] as NonNullable<CompletionRequest[F]>);
}
