import type { RequestContext } from './context.ts';

/** Logs where a bug is, without its message: messages may quote what the caller sent. */
export function reportBug(thrown: unknown, { requestId }: Pick<RequestContext, 'requestId'>): void {
  const [name, frames] =
    thrown instanceof Error ? [thrown.name, thrown.stack?.match(/^ +at .*$/gm)] : [typeof thrown, null];
  console.error(JSON.stringify({ requestId, event: 'bug', name, frames }));
}
