/**
 * The reason why a constraint cannot be compiled. `compile.ts` maps it to an ApiError whose code depends on
 * the type of the constraint.
 */
export class GrammarError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'GrammarError';
  }
}

/**
 * A syntax error at an offset of the source. The message gives line and column, both from 1; columns count
 * UTF-16 code units.
 */
export function syntaxError(source: string, offset: number, message: string): GrammarError {
  const before = source.slice(0, offset);
  const line = before.split('\n').length;
  const column = offset - before.lastIndexOf('\n');
  return new GrammarError(`${message} at line ${line}, column ${column}`);
}

/**
 * An error in a schema.
 * @param path the JSON pointer of the keyword, maybe with resources before it
 */
export function schemaError(path: string, message: string): GrammarError {
  return new GrammarError(`${path.slice(Math.max(0, path.indexOf('#')))}: ${message}`);
}
