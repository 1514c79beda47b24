import { useSignal } from '@preact/signals';
import { Dialog } from '../controls/dialog.tsx';
import { Segments } from '../controls/segments.tsx';
import { Switch } from '../controls/switch.tsx';
import { useSession } from '../store/session.ts';
import { CodeBlock } from './code-block.tsx';
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
  const code = requestCode(form.value, {
    method: 'POST',
    url: `${location.origin}/v1/completions`,
    key: withKey.value ? key.value : null,
    headers: dialect.value === null ? {} : { 'x-dialect': dialect.value },
    body,
  });
  return (
    <Dialog title="Copy the request as code" class="wide" onClose={onClose}>
      <div class="stack">
        <Segments
          label="Language"
          value={form.value}
          options={CODE_FORMS}
          onChange={(chosen) => (form.value = chosen)}
        />
        <CodeBlock code={code} />
        <Switch
          text="Include the key. Otherwise the code reads the environment variable KEY."
          value={withKey.value}
          onChange={(includes) => (withKey.value = includes)}
        />
      </div>
    </Dialog>
  );
}
