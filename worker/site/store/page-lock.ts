import { tabStorage } from './guarded-storage.ts';

/** A page that is reloaded loses its locks shortly after its successor has started. */
const PREDECESSOR_MS = 1_000;

/**
 * Locks a name against all other pages of this site in this browser, if the browser can. The lock ends with
 * the page.
 * @param patience longest wait for another page, in milliseconds
 * @returns what unlocks the name; null if another page has the lock
 */
export async function lockForPage(name: string, patience = PREDECESSOR_MS): Promise<(() => void) | null> {
  // Browsers have no locks on pages from another host over plain HTTP.
  if (!('locks' in navigator)) return () => undefined;
  const ended = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<boolean>();
  const hold = (lock: Lock | null) => {
    locked.resolve(lock !== null);
    return lock && ended.promise;
  };
  const options = patience > 0 ? { signal: AbortSignal.timeout(patience) } : { ifAvailable: true };
  // With site data blocked, there are no locks and nothing to lock.
  const refuse = (reason: Error) => locked.resolve(reason.name !== 'TimeoutError');
  navigator.locks.request(name, options, hold).catch(refuse);
  return (await locked.promise) ? ended.resolve : null;
}

const TAB = 'continuo-tab';

let ownTab: Promise<number> | null = null;

/**
 * Returns the number of this tab among the open ones, from 1. A reload keeps it, so each tab can store values
 * of its own, and the first tab that opens finds those of the last one.
 */
export const tabNumber = (): Promise<number> => (ownTab ??= takeTabNumber());

async function takeTabNumber(): Promise<number> {
  const number = Number(tabStorage.get(TAB));
  const [opened] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  // The copy of a tab has its number, too. On a busy machine, a reloaded page loses its lock late.
  const patience = (opened?.type === 'reload' ? 10 : 1) * PREDECESSOR_MS;
  if (number > 0 && (await lockForPage(`${TAB}-${number}`, patience))) return number;
  for (let free = 1; ; free += 1) {
    if (!(await lockForPage(`${TAB}-${free}`, 0))) continue;
    tabStorage.set(TAB, String(free));
    return free;
  }
}
