import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Dialog } from '../controls/dialog.tsx';
import { Fault } from '../controls/fault.tsx';
import { useSession } from '../store/session.ts';
import { CodeBlock } from './code-block.tsx';
import { type SharedText, shareLink } from './share-link.ts';

export interface ShareDialogProps {
  readonly shared: SharedText;
  readonly onClose: () => void;
}

/** Shows a link to the text and its parameters. */
export function ShareDialog({ shared, onClose }: ShareDialogProps) {
  const { key, keptKey } = useSession();
  const made = useSignal<Awaited<ReturnType<typeof shareLink>> | null>(null);
  useEffect(() => {
    const keys = [key.peek(), keptKey.peek()].filter((each) => each !== null);
    const day = new Date().toISOString().slice(0, 10);
    const base = location.origin + location.pathname;
    void shareLink(base, shared, keys, day).then((result) => (made.value = result));
  }, []);
  const { value } = made;
  return (
    <Dialog title="Link to this text" class="wide" onClose={onClose}>
      <div class="stack">
        {value !== null && 'refused' in value && <Fault text={value.refused} />}
        {value !== null && 'link' in value && <CodeBlock code={value.link} />}
        <p class="quiet">
          The link has the text, its insertion mark, the parameters, the model and the dialect. It has no key
          and no tints. Who opens it needs a key of this endpoint. The text is in the link itself; the server
          keeps nothing.
        </p>
      </div>
    </Dialog>
  );
}
