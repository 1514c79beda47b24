import { bugTrace } from '@continuo/shared/error-details.ts';
import type { RequestContext } from './request-context.ts';

/** Logs the stack of an unexpected error, without its message. */
export function reportBug(thrown: unknown, { requestId }: Pick<RequestContext, 'requestId'>): void {
  console.error(JSON.stringify({ requestId, event: 'bug', ...bugTrace(thrown) }));
}
