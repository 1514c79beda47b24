import type { CompletionRequest } from '../../shared/completion.ts';
import { ApiError } from '../../shared/errors.ts';

type Field = keyof CompletionRequest & string;

/** Two ways of saying one thing were both used, and differ. */
export function conflict(first: string, second: string): ApiError {
  const message = `Conflicting parameters: '${first}' and '${second}' mean the same but have different values. Send one of them.`;
  return new ApiError('conflicting_parameters', message, { param: first });
}

/**
 * The value of a field under whichever of its names it was sent; undefined when under none.
 * @throws ApiError 400 when two names carry different values
 */
export function either<F extends Field>(request: CompletionRequest, ...names: readonly [F, ...F[]]) {
  let found: F | null = null;
  for (const name of names) {
    const value = request[name];
    if (value === undefined || value === null) continue;
    if (found !== null && request[found] !== value) throw conflict(found, name);
    found ??= name;
  }
  return found === null ? undefined : (request[found] as NonNullable<CompletionRequest[F]>);
}
