/**
 * Texts by name that the browser keeps. With site data blocked, even reading `localStorage` throws; then
 * nothing is kept, and the page works without it.
 */
export interface GuardedStorage {
  get(name: string): string | null;
  /** Returns whether it is kept: storage may be blocked or full. */
  set(name: string, value: string): boolean;
  remove(name: string): void;
}

function guarded(open: () => Storage): GuardedStorage {
  const tried = <T>(use: (storage: Storage) => T, otherwise: T): T => {
    try {
      return use(open());
    } catch {
      return otherwise;
    }
  };
  return {
    get: (name) => tried((storage) => storage.getItem(name), null),
    set: (name, value) =>
      tried((storage) => {
        storage.setItem(name, value);
        return true;
      }, false),
    remove: (name) => tried((storage) => storage.removeItem(name), undefined),
  };
}

/** Lasts until site data is deleted; for all tabs. */
export const deviceStorage: GuardedStorage = guarded(() => localStorage);

/** Lasts as long as its tab. */
export const tabStorage: GuardedStorage = guarded(() => sessionStorage);
