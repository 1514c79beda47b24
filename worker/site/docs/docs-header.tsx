import { Icon } from '../controls/icon.tsx';
import { Mark } from '../shell/header.tsx';
import { KeyDialog } from '../shell/key-dialog.tsx';
import { addressOf, VIEWS, type ViewName } from '../shell/routes.ts';
import { switchTheme } from '../shell/theme.ts';
import { followWithKey } from '../store/api-key.ts';
import { useSession } from '../store/session.ts';
import { OVERVIEW } from './routes.ts';

/** The header of the page, whose views are links to the other document. */
export function DocsHeader() {
  const { access, askForKey, key } = useSession();
  const { state } = access.value;
  const follow = (event: MouseEvent) => followWithKey(event, key.value);
  return (
    <header class="header">
      <a class="brand" href="/" aria-label="Continuo" onClick={follow}>
        <Mark />
        <span>Continuo</span>
      </a>
      <nav aria-label="Views">
        {(Object.keys(VIEWS) as ViewName[]).map((name) => (
          <a key={name} href={`/${addressOf(name)}`} onClick={follow}>
            {VIEWS[name].title}
          </a>
        ))}
        <a href={OVERVIEW} aria-current="page">
          Docs
        </a>
      </nav>
      <div class="header-settings">
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
