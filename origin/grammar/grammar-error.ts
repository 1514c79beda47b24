/**
 * Why a constraint cannot be compiled. `compile.ts` turns it into the caller's ApiError, whose code depends on what
 * kind of constraint was sent.
 */
export class GrammarError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'GrammarError';
  }
}

/** A syntax error at an offset of a source text, told as line and column (both from 1, columns in code units). */
export function syntaxError(source: string, offset: number, message: string): GrammarError {
  const before = source.slice(0, offset);
  const line = before.split('\n').length;
  const column = offset - before.lastIndexOf('\n');
  return new GrammarError(`${message} at line ${line}, column ${column}`);
}

/** A fault of a schema, told with the place of the keyword. */
export function schemaError(path: string, message: string): GrammarError {
  return new GrammarError(`${path}: ${message}`);
}

/** @param source names the text in the message: `The schema` */
export function parseJson(text: string, source: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new GrammarError(`${source} is not valid JSON`);
  }
}
