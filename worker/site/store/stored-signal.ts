import { effect, type Signal, signal } from '@preact/signals';
import { type Database, openDatabase } from './database.ts';
import { deviceStorage } from './guarded-storage.ts';
import { tabNumber } from './page-lock.ts';

/** Time between a change and its writing. */
const WRITE_DELAY_MS = 250;

/**
 * A long text with its tokens takes 0.1 s to write. While it grows, at most this share of the time is spent
 * on that.
 */
const WRITING_SHARE = 0.05;

interface Change {
  readonly value: unknown;
  /** Undefined while the value is being written. */
  readonly timer: number | undefined;
}

const pending = new Map<string, Change>();

/** How a value that is too large for `localStorage` is kept there in part. */
export interface ValueParts<T> {
  /** Returns what must not be lost. */
  essenceOf(value: T): T;
  /** Completes what was not lost with what was stored before. */
  completed(essence: T, stored: T): T;
}

const parts = new Map<string, ValueParts<unknown>>();

/** Null until it is open: a page that is left cannot wait for it. */
let database: Database | null = null;

const leftName = (name: string) => `continuo-left-${name}`;

async function write(name: string): Promise<void> {
  const { value } = pending.get(name)!;
  pending.set(name, { value, timer: undefined });
  const opened = await openDatabase();
  const start = performance.now();
  const written = opened.put('values', value, name);
  pauses.set(name, (performance.now() - start) / WRITING_SHARE);
  await written;
  // Only now: a page that is left meanwhile must keep it.
  if (pending.get(name)?.value !== value) return;
  pending.delete(name);
  deviceStorage.remove(leftName(name));
}

/** Time until the next writing of a value, in milliseconds. */
const pauses = new Map<string, number>();

/** A text that changes all the time, because it is streamed, is written all the same. */
function writeSoon(name: string, value: unknown): void {
  const pause = Math.max(WRITE_DELAY_MS, pauses.get(name) ?? 0);
  // Without a database, the value waits for the end of the page.
  const run = () => void write(name).catch(() => undefined);
  pending.set(name, { value, timer: pending.get(name)?.timer ?? window.setTimeout(run, pause) });
}

/**
 * Keeps the changes that wait. Browsers may drop what a page that is left writes to IndexedDB, but
 * `localStorage` has no room for a long text with its tokens. Of such a value, it gets the part that must not
 * be lost.
 */
function keepPending(): void {
  for (const [name, { value }] of pending) {
    if (deviceStorage.set(leftName(name), JSON.stringify(value))) continue;
    const essence = parts.get(name)?.essenceOf(value);
    if (essence !== undefined) deviceStorage.set(leftName(name), JSON.stringify(essence));
    const transaction = database?.transaction('values', 'readwrite');
    void transaction?.store.put(value, name).catch(() => undefined);
    transaction?.commit();
  }
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
 * @param ofLarge needed for values that may be large
 */
export async function storedSignal<T>(name: string, initial: T, ofLarge?: ValueParts<T>): Promise<Signal<T>> {
  const stored = await openDatabase()
    .then((opened) => {
      database = opened;
      return opened.get('values', name);
    })
    .catch(() => undefined);
  let left = takeLeft(name) as T | undefined;
  if (left !== undefined && stored !== undefined && ofLarge) left = ofLarge.completed(left, stored as T);
  if (ofLarge) parts.set(name, ofLarge as ValueParts<unknown>);
  if (left !== undefined) writeSoon(name, left);
  const value = signal((left === undefined ? (stored as T | undefined) : left) ?? initial);
  let first = true;
  effect(() => {
    const current = value.value;
    if (first) first = false;
    else writeSoon(name, current);
  });
  return value;
}

/** As `storedSignal`, with a value for each tab: two tabs would overwrite each other's text. */
export async function tabSignal<T>(name: string, initial: T, ofLarge?: ValueParts<T>): Promise<Signal<T>> {
  const tab = await tabNumber();
  return storedSignal(tab === 1 ? name : `${name}-${tab}`, initial, ofLarge);
}
