import { useSignal } from '@preact/signals';
import { Button } from '../controls/button.tsx';

/** Code with a button that copies it. */
export const CodeBlock = ({ code }: { readonly code: string }) => (
  <div class="code-block">
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
    <pre tabIndex={0}>
      <code>{code}</code>
    </pre>
    <CopyButton key={code} />
  </div>
);

/** Copies the code of the block that it is in. */
export function CopyButton() {
  const done = useSignal('Copy');
  const copy = async (event: MouseEvent) => {
    const code = (event.currentTarget as Element).closest('.code-block')!.querySelector('code')!;
    // Browsers have no clipboard on pages from another host over plain HTTP.
    if ('clipboard' in navigator) {
      await navigator.clipboard.writeText(code.textContent);
      done.value = 'Copied';
    } else {
      getSelection()?.selectAllChildren(code);
      done.value = 'Selected: press Ctrl-C';
    }
  };
  return <Button class="copy" text={done.value} onClick={(event) => void copy(event)} />;
}
