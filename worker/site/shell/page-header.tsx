import type { ComponentChildren } from 'preact';
import { Icon } from '../controls/icon.tsx';
import { useSession } from '../store/session.ts';
import { KeyDialog } from './key-dialog.tsx';
import { addressOf, VIEW_TITLES, type ViewName } from './routes.ts';
import { switchTheme } from './theme.ts';

interface PageHeaderProps {
  /** The document with the views; empty in that document. */
  readonly page: '' | '/';
  /** The view that is shown; null = none of this document. */
  readonly view: ViewName | null;
  /** Handles clicks on the links to views. */
  readonly onFollow?: (event: MouseEvent) => void;
  /** The link to the documentation. */
  readonly docsLink: ComponentChildren;
  /** Controls before the key. */
  readonly children?: ComponentChildren;
}

/** The header of all pages: views, key and theme. */
export function PageHeader({ page, view, onFollow, docsLink, children }: PageHeaderProps) {
  const { access, askForKey } = useSession();
  const { state } = access.value;
  return (
    <header class="header">
      <a class="brand" href={page || addressOf('')} aria-label="Continuo" onClick={onFollow}>
        <Mark />
        <span>Continuo</span>
      </a>
      <nav aria-label="Views">
        {(Object.keys(VIEW_TITLES) as ViewName[]).map((name) => (
          <a
            key={name}
            href={page + addressOf(name)}
            aria-current={name === view ? 'page' : undefined}
            onClick={onFollow}
          >
            {VIEW_TITLES[name]}
          </a>
        ))}
        {docsLink}
      </nav>
      <div class="header-settings">
        {children}
        <button type="button" class="button" onClick={() => (askForKey.value = true)}>
          <span class={`key-state ${state}`} aria-hidden="true" />
          Key<span class="visually-hidden"> {state}</span>
        </button>
        <button
          type="button"
          class="button plain icon"
          aria-label="Switch between light and dark"
          onClick={switchTheme}
        >
          <Icon name="theme" />
        </button>
      </div>
      {askForKey.value && <KeyDialog onClose={() => (askForKey.value = false)} />}
    </header>
  );
}

const Mark = () => (
  <svg viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="7" fill="var(--accent)" />
    <path d="M7 16h7M20 16h1M26 16h.01" stroke="var(--on-accent)" stroke-width="4" stroke-linecap="round" />
  </svg>
);
