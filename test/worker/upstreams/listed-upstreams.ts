import type { StoredUpstream } from '../../../worker/upstreams/upstream-store.ts';

/** Returns a database whose list of upstreams `read` returns. */
export const databaseOf = (
  read: (session: D1SessionConstraint) => Promise<readonly StoredUpstream[]>,
): D1Database =>
  ({
    withSession: (session: D1SessionConstraint) => ({
      prepare: () => ({ bind: () => ({ all: async () => ({ results: await read(session) }) }) }),
    }),
  }) as unknown as D1Database;

/** Returns the row of an origin behind the binding of its name. */
export const originRow = (name: string, removedAt: number | null = null): StoredUpstream => ({
  name,
  config: JSON.stringify({ kind: 'origin', url: `http://${name}.example`, binding: name }),
  removedAt,
});

/** Returns what an upstream has counted for a request. */
export const account = (completionTokens: number, ended: boolean) => ({
  usage: { promptTokens: 3, cachedTokens: 0, completionTokens },
  finishReasons: [],
  ended,
  firstTokenMs: null,
});
