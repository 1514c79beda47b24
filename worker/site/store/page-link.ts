import { send } from '../api/client.ts';

/**
 * A link may bring a key in its fragment, which browsers never send: `/#code=…`, a one-time code of a local
 * start, or `/#key=sk-…`, which stays in the browser's history.
 */
export interface PageLink {
  readonly kind: 'code' | 'key';
  readonly value: string;
}

const IN_FRAGMENT = /[#?&]\/?(code|key)=([^#?&]+)/;

/** Returns what a fragment brings; null if that is nothing, or has faulty percent signs. */
export function linkOf(hash: string): PageLink | null {
  const [, kind, value] = IN_FRAGMENT.exec(hash) ?? [];
  if (value === undefined) return null;
  try {
    return { kind: kind as PageLink['kind'], value: decodeURIComponent(value) };
  } catch {
    return null;
  }
}

/** Takes the link out of the address, so that bookmarks and copied addresses do not have it. */
export function takeLink(): PageLink | null {
  const link = linkOf(location.hash);
  if (IN_FRAGMENT.test(location.hash))
    history.replaceState(null, '', location.hash.replace(IN_FRAGMENT, '') || '#/');
  return link;
}

/** Returns the key that a link stands for; null if its code was used or its server restarted. */
export async function keyOfLink({ kind, value }: PageLink): Promise<string | null> {
  if (kind === 'key') return value;
  try {
    const response = await send({ key: null, dialect: null }, '/page-key', { body: { code: value } });
    return ((await response.json()) as { readonly key: string }).key;
  } catch {
    return null;
  }
}
