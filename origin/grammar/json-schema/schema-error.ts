import { GrammarError } from '../grammar-error.ts';

/** A fault of a schema, told with the place of the keyword. */
export function schemaError(path: string, message: string): GrammarError {
  return new GrammarError(`${path}: ${message}`);
}
