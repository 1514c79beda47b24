/** Addresses of the documentation. */

export type ApiName = 'api' | 'admin';

export type DocsRoute =
  | { readonly kind: 'overview' }
  | { readonly kind: 'guide'; readonly name: string }
  | { readonly kind: 'operation'; readonly api: ApiName; readonly id: string }
  /** The list of the admin operations. */
  | { readonly kind: 'admin' }
  | { readonly kind: 'unknown' };

export const OVERVIEW = '/docs';
export const toGuide = (name: string): string => `${OVERVIEW}/guides/${name}`;
export const ADMIN = `${OVERVIEW}/admin`;
export const toOperation = (api: ApiName, id: string): string => `${OVERVIEW}/${api}/${id}`;

export function docsRouteOf(pathname: string): DocsRoute {
  const [, , kind, ...rest] = pathname.replace(/\/$/, '').split('/');
  const name = rest.join('/');
  if (kind === undefined) return { kind: 'overview' };
  if (kind === 'guides' && name !== '') return { kind: 'guide', name };
  if ((kind === 'api' || kind === 'admin') && name !== '') return { kind: 'operation', api: kind, id: name };
  return { kind: kind === 'admin' ? 'admin' : 'unknown' };
}
