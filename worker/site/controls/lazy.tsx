import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';

interface LazyProps<P> {
  readonly load: () => Promise<ComponentType<P>>;
  readonly props: P;
}

type Loaded<P> = { readonly Part: ComponentType<P> } | { readonly failed: string };

/** A part of the page that is loaded when it is first shown. */
export function Lazy<P extends object>({ load, props }: LazyProps<P>) {
  const loaded = useSignal<Loaded<P> | null>(null);
  useEffect(() => {
    load().then(
      (Part) => (loaded.value = { Part }),
      (reason: unknown) => (loaded.value = { failed: String(reason) }),
    );
  }, []);
  if (loaded.value === null) return null;
  if ('Part' in loaded.value) return <loaded.value.Part {...props} />;
  return (
    <p class="error-text" role="alert">
      This part of the page could not be loaded ({loaded.value.failed}). Reload the page; your text is kept.
    </p>
  );
}
