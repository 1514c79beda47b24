import { effect, type Signal, signal } from '@preact/signals';
import { openDatabase } from './database.ts';

/** Time between a change and its writing. Leaving the page writes at once. */
const WRITE_DELAY_MS = 250;

const pending = new Map<string, { readonly value: unknown; readonly timer: number }>();

async function write(name: string, value: unknown): Promise<void> {
  pending.delete(name);
  const writing = (await openDatabase()).transaction('values', 'readwrite');
  const written = writing.store.put(value, name);
  // Otherwise a page that is left would abort the transaction.
  writing.commit();
  await Promise.all([written, writing.done]);
}

function writeSoon(name: string, value: unknown): void {
  window.clearTimeout(pending.get(name)?.timer);
  pending.set(name, { value, timer: window.setTimeout(() => void write(name, value), WRITE_DELAY_MS) });
}

/** Writes all changes that wait. */
function flush(): void {
  for (const [name, { value, timer }] of pending) {
    window.clearTimeout(timer);
    void write(name, value);
  }
}

addEventListener('pagehide', flush);
document.addEventListener('visibilitychange', () => document.hidden && flush());

/**
 * Returns a signal that survives a reload, once its stored value is read. Changes are written shortly after.
 * @param initial value on the first visit, or if storage is not available
 */
export async function storedSignal<T>(name: string, initial: T): Promise<Signal<T>> {
  const stored = await openDatabase()
    .then((database) => database.get('values', name))
    .catch(() => undefined);
  const value = signal((stored as T | undefined) ?? initial);
  let first = true;
  effect(() => {
    const current = value.value;
    if (first) first = false;
    else writeSoon(name, current);
  });
  return value;
}

/** Removes a stored value. */
export async function forget(name: string): Promise<void> {
  window.clearTimeout(pending.get(name)?.timer);
  pending.delete(name);
  await (await openDatabase()).delete('values', name);
}
