import { useSignal, useSignalEffect } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { Playground } from '../playground/playground.tsx';
import { PageHeader } from './page-header.tsx';
import { VIEW_TITLES, type ViewName, viewOf } from './routes.ts';

/** All views but the first are loaded when they are shown. */
const LOADERS: Readonly<Record<ViewName, () => Promise<ComponentType>>> = {
  '': async () => Playground,
  tree: async () => (await import('../tree/tree-view.tsx')).TreeView,
  compare: async () => (await import('../compare/compare-view.tsx')).CompareView,
};

type Loaded = { readonly name: ViewName; readonly View: ComponentType } | { readonly failed: string };

export function App() {
  const view = useSignal(viewOf(location.hash));
  const loaded = useSignal<Loaded | null>(null);
  useEffect(() => {
    const follow = () => {
      view.value = viewOf(location.hash);
    };
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  useSignalEffect(() => {
    const name = view.value;
    document.title = `${VIEW_TITLES[name]} · Continuo`;
    LOADERS[name]().then(
      (View) => {
        if (view.value === name) loaded.value = { name, View };
      },
      (reason: unknown) => {
        loaded.value = { failed: String(reason) };
      },
    );
  });
  return (
    <>
      <PageHeader view={view.value} />
      <main>{loaded.value && <LoadedView loaded={loaded.value} />}</main>
    </>
  );
}

function LoadedView({ loaded }: { readonly loaded: Loaded }) {
  if ('View' in loaded) return <loaded.View key={loaded.name} />;
  return (
    <div class="empty" role="alert">
      <h1>This view could not be loaded</h1>
      <p>The server may have been updated or is down ({loaded.failed}). Your texts are kept.</p>
      <Button class="primary" text="Reload the page" onClick={() => location.reload()} />
    </div>
  );
}
