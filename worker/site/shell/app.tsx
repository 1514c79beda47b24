import { effect, useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { useListener } from '../controls/use-listener.ts';
import { Playground } from '../playground/playground.tsx';
import { PageHeader } from './page-header.tsx';
import { VIEW_TITLES, type ViewName, viewOf } from './routes.ts';

/** All views but the first are loaded when they are shown. */
const LOADERS: Readonly<Record<ViewName, () => Promise<ComponentType>>> = {
  '': async () => Playground,
  tree: async () => (await import('../tree/tree-view.tsx')).TreeView,
  compare: async () => (await import('../compare/compare-view.tsx')).CompareView,
  account: async () => (await import('../account/account-view.tsx')).AccountView,
  operator: async () => (await import('../operator/operator-view.tsx')).OperatorView,
};

type Loaded = { readonly name: ViewName; readonly View: ComponentType } | { readonly failed: string };

export function App() {
  const view = useSignal(viewOf(location.hash));
  const loaded = useSignal<Loaded | null>(null);
  useListener('hashchange', () => (view.value = viewOf(location.hash)));
  // Before the first paint, and so before the first click. Lasts as long as the page.
  useLayoutEffect(() => {
    effect(() => {
      const name = view.value;
      document.title = `${VIEW_TITLES[name]} · Continuo`;
      const show = (next: Loaded) => {
        if (view.value === name) loaded.value = next;
      };
      LOADERS[name]().then(
        (View) => show({ name, View }),
        (reason: unknown) => show({ failed: String(reason) }),
      );
    });
  }, []);
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
