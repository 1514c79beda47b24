import type { UsageAccount } from '../generation.ts';

/**
 * Accounts inside a written stream, as comments of HTML: the edge's native parser finds them and takes them out, so that
 * JavaScript runs a few times a second there, however many events pass. For it to see nothing else, the events themselves
 * have no `<`.
 */
export const accountMark = (account: UsageAccount): string => `<!--${JSON.stringify(account)}-->`;

/** The same JSON without `<`, which may stand in its strings alone. */
export const withoutTags = (json: string): string => json.replaceAll('<', '\\u003c');
