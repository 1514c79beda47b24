import { useSignal } from '@preact/signals';
import { useListener } from '../controls/use-listener.ts';
import { PageHeader } from '../shell/page-header.tsx';
import { DocsNavigation } from './docs-navigation.tsx';
import type { DocsState } from './docs-state.ts';
import { GuideView } from './guide-view.tsx';
import { OperationView } from './operation/operation-view.tsx';
import { AdminOverview, NotFound, Overview } from './overview.tsx';
import { OVERVIEW } from './routes.ts';

/** Returns the address of a plain click on a link inside the documentation; null for all other clicks. */
function addressOfClick(event: MouseEvent): string | null {
  const link = (event.target as Element).closest('a');
  if (link === null || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return null;
  const { origin, pathname, hash } = new URL(link.href);
  if (origin !== location.origin || link.target !== '') return null;
  const inside = pathname === OVERVIEW || pathname.startsWith(`${OVERVIEW}/`);
  // To a section of the same page, the browser scrolls; the page itself would be loaded again, without its
  // key.
  return inside && (pathname !== location.pathname || hash === '') ? pathname + hash : null;
}

export function DocsApp({ docs }: { readonly docs: DocsState }) {
  const menuOpen = useSignal(false);
  useListener('click', (event) => {
    const address = addressOfClick(event);
    if (address === null) return;
    event.preventDefault();
    menuOpen.value = false;
    docs.go(address);
  });
  return (
    <>
      <PageHeader view="docs" />
      <div class="docs">
        <DocsNavigation docs={docs} menuOpen={menuOpen} />
        <main class="docs-content" id="content" key={docs.pathname.value}>
          <View docs={docs} />
        </main>
      </div>
    </>
  );
}

function View({ docs }: { readonly docs: DocsState }) {
  const route = docs.route.value;
  switch (route.kind) {
    case 'overview':
      return <Overview docs={docs} />;
    case 'admin':
      return <AdminOverview docs={docs} />;
    case 'guide':
      return <GuideView name={route.name} />;
    case 'operation':
      return <OperationView api={route.api} id={route.id} docs={docs} />;
    default:
      return <NotFound />;
  }
}
