import { effect, type Signal, signal } from '@preact/signals';
import { openDatabase } from './database.ts';
import { deviceStorage } from './guarded-storage.ts';
import { tabNumber } from './page-lock.ts';

/** Time between a change and its writing. */
const WRITE_DELAY_MS = 250;

const pending = new Map<string, { readonly value: unknown; readonly timer: number }>();

const leftName = (name: string) => `continuo-left-${name}`;

async function write(name: string, value: unknown): Promise<void> {
  await (await openDatabase()).put('values', value, name);
  // Only now: a page that is left meanwhile must keep it.
  if (pending.get(name)?.value !== value) return;
  pending.delete(name);
  deviceStorage.remove(leftName(name));
}

function writeSoon(name: string, value: unknown): void {
  window.clearTimeout(pending.get(name)?.timer);
  pending.set(name, { value, timer: window.setTimeout(() => void write(name, value), WRITE_DELAY_MS) });
}

/** Keeps the changes that wait. Browsers may drop what a page that is left writes to IndexedDB. */
function keepPending(): void {
  for (const [name, { value }] of pending) deviceStorage.set(leftName(name), JSON.stringify(value));
}

/** Takes the change that the last page left behind; undefined = none. */
function takeLeft(name: string): unknown {
  const left = deviceStorage.get(leftName(name));
  deviceStorage.remove(leftName(name));
  return left === null ? undefined : JSON.parse(left);
}

addEventListener('pagehide', keepPending);

/**
 * Returns a signal that survives a reload, once its stored value is read. Changes are written shortly after.
 * @param initial value on the first visit, or if storage is not available
 */
export async function storedSignal<T>(name: string, initial: T): Promise<Signal<T>> {
  const stored = await openDatabase()
    .then((database) => database.get('values', name))
    .catch(() => undefined);
  const left = takeLeft(name);
  if (left !== undefined) writeSoon(name, left);
  const found = (left === undefined ? stored : left) as T | undefined;
  const value = signal(found ?? initial);
  let first = true;
  effect(() => {
    const current = value.value;
    if (first) first = false;
    else writeSoon(name, current);
  });
  return value;
}

/** As `storedSignal`, with a value for each tab: two tabs would overwrite each other's text. */
export async function tabSignal<T>(name: string, initial: T): Promise<Signal<T>> {
  const tab = await tabNumber();
  return storedSignal(tab === 1 ? name : `${name}-${tab}`, initial);
}
