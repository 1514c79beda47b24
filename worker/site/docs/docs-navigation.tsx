import { GROUPS } from 'virtual:guides';
import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import type { DocsState } from './docs-state.ts';
import { operationsOf } from './documents.ts';
import { Method } from './overview.tsx';
import { ADMIN, type ApiName, OVERVIEW, toGuide } from './routes.ts';
import { DocsSearch } from './search/docs-search.tsx';

interface NavigationProps {
  readonly docs: DocsState;
  /** Whether the list is open on a narrow screen. */
  readonly menuOpen: Signal<boolean>;
}

export function DocsNavigation({ docs, menuOpen }: NavigationProps) {
  const panel = useRef<HTMLDivElement>(null);
  const address = docs.pathname.value;
  const isComplete = docs.documents.api.value.state === 'loaded';
  useEffect(() => {
    panel.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [address, isComplete]);
  return (
    <div class={`docs-side ${menuOpen.value ? 'open' : ''}`}>
      <Button
        class="docs-menu"
        text="Contents and search"
        aria-expanded={menuOpen.value}
        onClick={() => (menuOpen.value = !menuOpen.value)}
      />
      <div class="docs-panel" ref={panel}>
        <DocsSearch docs={docs}>
          <nav aria-label="Documentation">
            <ul>
              <NavigationLink docs={docs} address={OVERVIEW}>
                Overview
              </NavigationLink>
            </ul>
            {GROUPS.map(({ title, guides }) => (
              <Group key={title} title={title}>
                {guides.map((guide) => (
                  <NavigationLink key={guide.name} docs={docs} address={toGuide(guide.name)}>
                    {guide.title}
                  </NavigationLink>
                ))}
              </Group>
            ))}
            <Operations docs={docs} api="api" />
            <Group title="Admin API">
              <NavigationLink docs={docs} address={ADMIN}>
                Overview
              </NavigationLink>
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
          {operations.map(({ address, method, path }) => (
            <NavigationLink key={address} docs={docs} address={address}>
              <Method name={method} />
              <span>{path}</span>
            </NavigationLink>
          ))}
        </Group>
      ))}
    </>
  );
}

interface GroupProps {
  readonly title: string;
  readonly children: ComponentChildren;
}

const Group = ({ title, children }: GroupProps) => (
  <section class="docs-group">
    <h2>{title}</h2>
    <ul>{children}</ul>
  </section>
);

interface LinkProps {
  readonly docs: DocsState;
  readonly address: string;
  readonly children: ComponentChildren;
}

const NavigationLink = ({ docs, address, children }: LinkProps) => (
  <li>
    <a class="docs-link" href={address} aria-current={docs.pathname.value === address ? 'page' : undefined}>
      {children}
    </a>
  </li>
);
