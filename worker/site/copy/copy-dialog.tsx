import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { Dialog } from '../controls/dialog.tsx';
import { Icon } from '../controls/icon.tsx';
import { Segments } from '../controls/segments.tsx';
import { useSession } from '../store/session.ts';
import { CODE_FORMS, type CodeForm, requestCode } from './request-code.ts';

interface CopyDialogProps {
  /** The request to write. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly onClose: () => void;
}

/** Shows the request as code. */
export function CopyDialog({ body, onClose }: CopyDialogProps) {
  const { key, dialect } = useSession();
  const form = useSignal<CodeForm>('curl');
  const withKey = useSignal(false);
  const done = useSignal<string | null>(null);
  const code = requestCode(form.value, {
    url: location.origin,
    key: withKey.value ? key.value : null,
    dialect: dialect.value,
    body,
  });
  const place = useRef<HTMLElement>(null);
  const copy = async () => {
    // Browsers have no clipboard on pages from another host over plain HTTP.
    if ('clipboard' in navigator) {
      await navigator.clipboard.writeText(code);
      done.value = 'Copied';
    } else {
      getSelection()?.selectAllChildren(place.current!);
      done.value = 'Selected: press Ctrl-C';
    }
  };
  return (
    <Dialog title="Copy the request as code" class="wide" onClose={onClose}>
      <div class="stack">
        <Segments
          label="Language"
          value={form.value}
          options={CODE_FORMS}
          onChange={(chosen) => {
            form.value = chosen;
            done.value = null;
          }}
        />
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
        <pre class="code" tabIndex={0}>
          <code ref={place}>{code}</code>
        </pre>
        <label class="switch">
          <input
            type="checkbox"
            checked={withKey.value}
            onChange={(event) => (withKey.value = event.currentTarget.checked)}
          />
          Include the key. Otherwise the code reads the environment variable KEY.
        </label>
        <div class="row">
          <button type="button" class="button primary" onClick={() => void copy()}>
            <Icon name="copy" />
            {done.value ?? 'Copy'}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
