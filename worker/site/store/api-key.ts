/** A link may carry the key in its fragment, which browsers never send: `/#key=sk-…`, or `/#/tree#key=sk-…`. */

const IN_FRAGMENT = /[#?&]\/?key=([^#?&]+)/;

/** Returns the key of a fragment; null if it has none, or one with faulty percent signs. */
export function keyFromFragment(hash: string): string | null {
  const value = IN_FRAGMENT.exec(hash)?.[1];
  if (value === undefined) return null;
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
}

/** Takes the key out of the address, so that history, bookmarks and copied links do not have it. */
export function takeKeyFromAddress(): string | null {
  const key = keyFromFragment(location.hash);
  if (IN_FRAGMENT.test(location.hash))
    history.replaceState(null, '', location.hash.replace(IN_FRAGMENT, '') || '#/');
  return key;
}

/** Follows a plain click on a link to another document of this site with the key in the fragment, so that it needs no storage. */
export function followWithKey(event: MouseEvent, key: string | null): void {
  if (key === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const address = new URL((event.currentTarget as HTMLAnchorElement).href);
  address.hash = `${address.hash}#key=${encodeURIComponent(key)}`.slice(1);
  event.preventDefault();
  location.assign(address);
}
