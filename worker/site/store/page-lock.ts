/** A page that is reloaded loses its locks shortly after its successor has started. */
const PREDECESSOR_MS = 1_000;

/**
 * Locks a name against all other pages of this site in this browser, if the browser can. The lock ends with the page.
 * @returns what unlocks the name; null if another page has the lock
 */
export async function lockForPage(name: string): Promise<(() => void) | null> {
  // Browsers have no locks on pages from another host over plain HTTP.
  if (!('locks' in navigator)) return () => undefined;
  const ended = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<boolean>();
  const hold = () => {
    locked.resolve(true);
    return ended.promise;
  };
  const signal = AbortSignal.timeout(PREDECESSOR_MS);
  navigator.locks.request(name, { signal }, hold).catch(() => locked.resolve(false));
  return (await locked.promise) ? ended.resolve : null;
}
