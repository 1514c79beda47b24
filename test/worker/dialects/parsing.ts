import { ApiError, type ErrorEnvelope } from '../../../shared/errors.ts';
import type { DialectName } from '../../../shared/tenant.ts';
import { DIALECTS } from '../../../worker/dialects/dialect.ts';
import type { ParsedCompletion } from '../../../worker/dialects/parsed-completion.ts';
import { parseCompletion, type RequestBounds } from '../../../worker/dialects/request.ts';

export const BOUNDS: RequestBounds = { maxTokens: null, sequences: 256, logprobBytes: 2 ** 20 };

type Body = Readonly<Record<string, unknown>>;

/** Parses a body, with the required fields added. */
export function parse(
  body: Body,
  dialect: DialectName = 'openai',
  bounds: RequestBounds = BOUNDS,
): ParsedCompletion {
  return parseCompletion({ model: 'default', prompt: 'x', ...body }, DIALECTS[dialect], bounds);
}

/** Returns the error of a rejected body; null if it is accepted. */
export function refusal(
  body: Body,
  dialect: DialectName = 'openai',
  bounds: RequestBounds = BOUNDS,
): ErrorEnvelope['error'] | null {
  try {
    parse(body, dialect, bounds);
    return null;
  } catch (thrown) {
    if (thrown instanceof ApiError) return thrown.envelope().error;
    throw thrown;
  }
}
