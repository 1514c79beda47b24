import { GROUPS } from 'virtual:guides';
import type { Signal } from '@preact/signals';
import type { DocsState } from './docs-state.ts';
import { type ListedOperation, operationsOf } from './documents.ts';
import { Method } from './overview.tsx';
import { ADMIN, type ApiName, OVERVIEW, toGuide } from './routes.ts';
import { DocsSearch } from './search/docs-search.tsx';

interface NavigationProps {
  readonly docs: DocsState;
  /** Whether the list is open on a narrow screen. */
  readonly menuOpen: Signal<boolean>;
}

export function DocsNavigation({ docs, menuOpen }: NavigationProps) {
  return (
    <div class={`docs-side ${menuOpen.value ? 'open' : ''}`}>
      <button
        type="button"
        class="button docs-menu"
        aria-expanded={menuOpen.value}
        onClick={() => (menuOpen.value = !menuOpen.value)}
      >
        Contents and search
      </button>
      <div class="docs-panel">
        <DocsSearch docs={docs}>
          <nav aria-label="Documentation">
            <ul>
              <NavigationLink docs={docs} address={OVERVIEW} title="Overview" />
            </ul>
            <Operations docs={docs} api="api" />
            {GROUPS.map(({ title, guides }) => (
              <Group key={title} title={title}>
                {guides.map((guide) => (
                  <NavigationLink
                    key={guide.name}
                    docs={docs}
                    address={toGuide(guide.name)}
                    title={guide.title}
                  />
                ))}
              </Group>
            ))}
            <Group title="Admin API">
              <NavigationLink docs={docs} address={ADMIN} title="Overview" />
            </Group>
            <Operations docs={docs} api="admin" />
          </nav>
        </DocsSearch>
      </div>
    </div>
  );
}

/** The operations of a loaded document, by tag. */
function Operations({ docs, api }: { readonly docs: DocsState; readonly api: ApiName }) {
  const loaded = docs.documents[api].value;
  if (loaded.state !== 'loaded') return null;
  const byTag = Map.groupBy(operationsOf(loaded.document, api), ({ operation }) => operation.tags[0] ?? '');
  return (
    <>
      {[...byTag].map(([tag, operations]) => (
        <Group key={tag} title={tag}>
          {operations.map((one) => (
            <OperationLink key={one.address} docs={docs} listed={one} />
          ))}
        </Group>
      ))}
    </>
  );
}

const Group = ({
  title,
  children,
}: {
  readonly title: string;
  readonly children: preact.ComponentChildren;
}) => (
  <section class="docs-group">
    <h2>{title}</h2>
    <ul>{children}</ul>
  </section>
);

const currentOf = (docs: DocsState, address: string) =>
  docs.pathname.value === address ? ('page' as const) : undefined;

function NavigationLink({
  docs,
  address,
  title,
}: {
  readonly docs: DocsState;
  readonly address: string;
  readonly title: string;
}) {
  return (
    <li>
      <a class="docs-link" href={address} aria-current={currentOf(docs, address)}>
        {title}
      </a>
    </li>
  );
}

const OperationLink = ({ docs, listed }: { readonly docs: DocsState; readonly listed: ListedOperation }) => (
  <li>
    <a class="docs-link" href={listed.address} aria-current={currentOf(docs, listed.address)}>
      <Method name={listed.method} />
      <span>{listed.path}</span>
    </a>
  </li>
);
