import { IconButton } from '../controls/button.tsx';
import { useSession } from '../store/session.ts';
import { SharedDialect, SharedModel } from './connection-settings.tsx';
import { KeyDialog } from './key-dialog.tsx';
import { addressOf, VIEW_TITLES, type ViewName } from './routes.ts';
import { RunHereButton } from './run-here-button.tsx';
import { switchTheme } from './theme.ts';

/** The header of all pages: views, model, dialect, key and theme. The documentation is another document. */
export function PageHeader({ view }: { readonly view: ViewName | 'docs' }) {
  const { access, role, askForKey } = useSession();
  const { state } = access.value;
  const isDocs = view === 'docs';
  const current = (isCurrent: boolean) => (isCurrent ? 'page' : undefined);
  const isShown: Partial<Record<ViewName, boolean>> = {
    account: state !== 'no-key' || view === 'account',
    operator: false,
  };
  const views = (Object.keys(VIEW_TITLES) as ViewName[]).filter((name) => isShown[name] ?? true);
  const linkTo = (name: ViewName) => (
    <a key={name} href={(isDocs ? '/' : '') + addressOf(name)} aria-current={current(name === view)}>
      {VIEW_TITLES[name]}
    </a>
  );
  return (
    <header class="header">
      <a class="brand" href={isDocs ? '/' : addressOf('')} aria-label="Continuo">
        <Mark />
        <span>Continuo</span>
      </a>
      <nav aria-label="Views">
        {views.map(linkTo)}
        <a href="/docs" aria-current={current(isDocs)}>
          Docs
        </a>
        {/* Last, because the server must first say so: the other links stay where they are. */}
        {(role.value !== null || view === 'operator') && linkTo('operator')}
      </nav>
      <div class="header-settings">
        {!isDocs && <SharedModel />}
        {!isDocs && <RunHereButton />}
        {!isDocs && <SharedDialect />}
        <button type="button" class="button" onClick={() => (askForKey.value = true)}>
          <span class={`key-state ${state}`} aria-hidden="true" />
          Key<span class="visually-hidden"> {state}</span>
        </button>
        <IconButton icon="theme" name="Switch between light and dark" onClick={switchTheme} />
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
