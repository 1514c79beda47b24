import { useEffect, useRef } from 'preact/hooks';
import { Button } from '../../controls/button.tsx';
import { CodeBlock } from '../../copy/code-block.tsx';
import { useAccount } from '../account.ts';
import type { MadeKey } from '../api-objects.ts';

/** New keys, in all sections until the visitor has stored them: no other answer shows them again. */
export function MadeKeys() {
  const { made } = useAccount();
  return (
    <>
      {made.value.map((key) => (
        <Made
          key={key.key}
          of={key}
          onStored={() => (made.value = made.value.filter((each) => each !== key))}
        />
      ))}
    </>
  );
}

function Made({ of, onStored }: { readonly of: MadeKey; readonly onStored: () => void }) {
  const element = useRef<HTMLElement>(null);
  // The dialog that made it gives the focus back when it closes; after that, the key has it.
  useEffect(() => {
    const timer = setTimeout(() => element.current?.focus());
    return () => clearTimeout(timer);
  }, []);
  return (
    <section ref={element} class="panel made" aria-label="New key" tabIndex={-1}>
      <p>
        <strong>
          The new key <bdi>{of.name}</bdi>
        </strong>
        . It is shown only now: store it before you go on.
      </p>
      <CodeBlock code={of.key} />
      {of.warning !== undefined && <p class="error-text">{of.warning}</p>}
      <div class="row">
        <Button text="I have stored it" onClick={onStored} />
      </div>
    </section>
  );
}
