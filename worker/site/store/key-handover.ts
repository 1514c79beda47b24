import type { Signal } from '@preact/signals';
import { tabStorage } from './guarded-storage.ts';

/** Hands the key from one document of this site to the next. Addresses stay in the history. */

const NAME = 'continuo-key';

/** The key stays no longer in storage if the next document never comes. */
const LEFT_MS = 10_000;

/** Time for a new tab to load, from the click that opens it. */
const OFFER_MS = 60_000;

/** The page, the documentation, and nothing else of this site. */
const isDocument = ({ origin, pathname }: URL): boolean =>
  origin === location.origin && /^\/(docs(\/.*)?)?$/.test(pathname);

/** Takes the key that the last document of this tab left; null = none. */
export function takeLeftKey(): string | null {
  const left = tabStorage.get(NAME);
  tabStorage.remove(NAME);
  return left;
}

/** Leaves the key to the next document of this tab, also by Back. Older browsers cannot tell it. */
function leaveKey(key: Signal<string | null>): void {
  window.navigation?.addEventListener('navigate', ({ destination, navigationType }) => {
    const current = key.peek();
    const stays = destination.sameDocument || navigationType === 'reload';
    if (stays || current === null || !isDocument(new URL(destination.url))) return;
    tabStorage.set(NAME, current);
    setTimeout(() => tabStorage.remove(NAME), LEFT_MS);
  });
}

/** A new tab asks under a number, and only it takes the answer. */
interface Message {
  readonly asker: number;
  /** Absent in the question. */
  readonly key?: string;
}

/** Answers one new tab per click that opens one: middle button, modifier key or menu. */
function offerKey(key: Signal<string | null>, channel: BroadcastChannel): void {
  /** When each offer ends, in milliseconds. */
  let offers: readonly number[] = [];
  const noteClick = ({ target, type, button, ctrlKey, metaKey, shiftKey }: MouseEvent) => {
    const link = target instanceof Element ? target.closest('a') : null;
    const opensTab =
      type === 'click' ? ctrlKey || metaKey || shiftKey : type === 'contextmenu' || button === 1;
    if (link === null || !opensTab || !isDocument(new URL(link.href))) return;
    offers = [...offers, Date.now() + OFFER_MS];
  };
  for (const type of ['click', 'auxclick', 'contextmenu'] as const) addEventListener(type, noteClick, true);
  channel.addEventListener('message', ({ data }: MessageEvent<Message>) => {
    const current = key.peek();
    if (data.key !== undefined || current === null) return;
    const [offer, ...others] = offers.filter((end) => Date.now() <= end);
    offers = others;
    if (offer === undefined) return;
    channel.postMessage({ asker: data.asker, key: current } satisfies Message);
  });
}

/** A tab without a key asks the one that may have opened it. A reloaded or returned one was not opened. */
function askForKey(key: Signal<string | null>, channel: BroadcastChannel): void {
  const [entry] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  if (entry?.type !== 'navigate' || key.peek() !== null) return;
  const asker = Math.random();
  channel.addEventListener('message', ({ data }: MessageEvent<Message>) => {
    if (data.asker === asker && data.key !== undefined) key.value ??= data.key;
  });
  channel.postMessage({ asker } satisfies Message);
}

/** Passes the key on to documents that this one opens, and takes that of the tab that has opened this one. */
export function shareKey(key: Signal<string | null>): void {
  leaveKey(key);
  const channel = new BroadcastChannel(NAME);
  offerKey(key, channel);
  askForKey(key, channel);
}
