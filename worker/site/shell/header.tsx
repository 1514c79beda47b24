import { Icon } from '../controls/icon.tsx';
import { followWithKey } from '../store/api-key.ts';
import { useSession } from '../store/session.ts';
import { DialectSelect, ModelSelect } from './connection-settings.tsx';
import { KeyDialog } from './key-dialog.tsx';
import { addressOf, VIEWS, type ViewName } from './routes.ts';
import { switchTheme } from './theme.ts';

export const Mark = () => (
  <svg viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="7" fill="var(--accent)" />
    <path d="M7 16h7M20 16h1M26 16h.01" stroke="var(--on-accent)" stroke-width="4" stroke-linecap="round" />
  </svg>
);

export function Header({ view }: { readonly view: ViewName }) {
  const { access, askForKey, key } = useSession();
  const { state } = access.value;
  return (
    <header class="header">
      <a class="brand" href={addressOf('')} aria-label="Continuo">
        <Mark />
        <span>Continuo</span>
      </a>
      <nav aria-label="Views">
        {(Object.keys(VIEWS) as ViewName[]).map((name) => (
          <a key={name} href={addressOf(name)} aria-current={name === view ? 'page' : undefined}>
            {VIEWS[name].title}
          </a>
        ))}
        <a href="/docs" onClick={(event) => followWithKey(event, key.value)}>
          Docs
        </a>
      </nav>
      <div class="header-settings">
        <ModelSelect />
        <DialectSelect />
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
