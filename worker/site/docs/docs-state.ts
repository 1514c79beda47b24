import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { RequestFailure } from '../api/request-failure.ts';
import type { Session } from '../store/session.ts';
import { loadDocument, type OpenApiDocument } from './documents.ts';
import { type ApiName, type DocsRoute, docsRouteOf } from './routes.ts';

/** A document that is shown, or why it is not. */
export type Loaded =
  | { readonly state: 'loading' }
  | { readonly state: 'loaded'; readonly document: OpenApiDocument }
  | { readonly state: 'failed'; readonly failure: RequestFailure };

/** What the parts of the documentation share. */
export interface DocsState {
  readonly pathname: Signal<string>;
  readonly route: ReadonlySignal<DocsRoute>;
  readonly documents: Readonly<Record<ApiName, Signal<Loaded>>>;
  /** Shows another place of the documentation. */
  go(address: string): void;
}

const isAdmin = (route: DocsRoute): boolean =>
  route.kind === 'admin' || (route.kind === 'operation' && route.api === 'admin');

/** Loads the public document at once, that of the admin API when shown, again for each key. */
export function openDocs(session: Session): DocsState {
  const pathname = signal(location.pathname);
  const route = computed(() => docsRouteOf(pathname.value));
  const documents = {
    api: signal<Loaded>({ state: 'loading' }),
    admin: signal<Loaded>({ state: 'loading' }),
  };
  const load = async (api: ApiName) => {
    try {
      const document = await loadDocument(api, session.connection.peek());
      documents[api].value = { state: 'loaded', document };
    } catch (thrown) {
      if (!(thrown instanceof RequestFailure)) throw thrown;
      documents[api].value = { state: 'failed', failure: thrown };
    }
  };
  void load('api');
  const adminShown = computed(() => isAdmin(route.value));
  effect(() => {
    session.key.value;
    if (adminShown.value) void load('admin');
  });
  const go = (address: string) => {
    history.pushState(null, '', address);
    pathname.value = location.pathname;
  };
  addEventListener('popstate', () => {
    pathname.value = location.pathname;
  });
  return { pathname, route, documents, go };
}
