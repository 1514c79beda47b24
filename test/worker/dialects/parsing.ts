import { ApiError, type ErrorEnvelope } from '../../../shared/errors.ts';
import type { DialectName } from '../../../shared/tenant.ts';
import type { CompletionCall } from '../../../worker/dialects/completion-call.ts';
import { DIALECTS } from '../../../worker/dialects/dialect.ts';
import { parseCompletion, type RequestBounds } from '../../../worker/dialects/request.ts';

const BOUNDS: RequestBounds = { maxTokens: null, sequences: 256 };

type Body = Readonly<Record<string, unknown>>;

/** A body with the fields that every body needs, understood. */
export function parse(
  body: Body,
  dialect: DialectName = 'openai',
  bounds: RequestBounds = BOUNDS,
): CompletionCall {
  return parseCompletion({ model: 'default', prompt: 'x', ...body }, DIALECTS[dialect], bounds);
}

/** The error a body is refused with; null when it is accepted. */
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
