/** Why a constraint cannot be compiled. `compile.ts` turns it into the caller's ApiError. */
export class GrammarError extends Error {
  readonly code: 'invalid_grammar' | 'invalid_json_schema' | 'unsupported_parameter';

  constructor(message: string, code: GrammarError['code'] = 'invalid_grammar') {
    super(message);
    this.name = 'GrammarError';
    this.code = code;
  }
}

/** A syntax error at an offset of a source text, told as line and column (both from 1, columns in code units). */
export function syntaxError(source: string, offset: number, message: string): GrammarError {
  const before = source.slice(0, offset);
  const line = before.split('\n').length;
  const column = offset - before.lastIndexOf('\n');
  return new GrammarError(`${message} at line ${line}, column ${column}`);
}
