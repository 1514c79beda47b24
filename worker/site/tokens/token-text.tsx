import { useSignal } from '@preact/signals';
import type { PromptToken } from '../api/completion-stream.ts';
import { useSession } from '../store/session.ts';
import { AlternativesPopover, type Choose } from './alternatives.tsx';
import { percent, tintClass } from './probability.ts';
import { TokenName } from './token-name.tsx';

interface TokenTextProps {
  readonly tokens: readonly PromptToken[];
  /** Called for a click on an alternative; absent = alternatives are only shown. */
  readonly onChoose?: (index: number, ...choice: Parameters<Choose>) => void;
}

/** Shows tokens tinted by probability. Hover or focus shows the alternatives of a token. */
export function TokenText({ tokens, onChoose }: TokenTextProps) {
  const { display } = useSession();
  const open = useSignal<{ readonly index: number; readonly anchor: HTMLElement } | null>(null);
  const { tint, whiteSpace } = display.value;
  const selected = open.value === null ? undefined : tokens[open.value.index];
  const show = (index: number, anchor: HTMLElement) => {
    if (open.peek()?.index !== index) open.value = { index, anchor };
  };
  const close = () => {
    open.value = null;
  };
  return (
    <div class={`token-text ${tint === 'underline' ? 'underlined' : ''}`} onPointerLeave={close}>
      {tokens.map((token, index) => (
        <button
          key={index}
          type="button"
          class={`${tint === 'none' ? 'token' : tintClass(token.logprob)} ${open.value?.index === index ? 'selected' : ''}`}
          aria-label={token.logprob === null ? token.name : `${token.name}, ${percent(token.logprob)}`}
          // Unlike pointerenter, it is not sent for text that moves under a resting pointer.
          onPointerMove={(event) => show(index, event.currentTarget)}
          onFocus={(event) => show(index, event.currentTarget)}
          onBlur={close}
        >
          <TokenName name={token.name} whiteSpace={whiteSpace} />
        </button>
      ))}
      {open.value && selected && (
        <AlternativesPopover
          tokens={[selected]}
          anchor={open.value.anchor}
          {...(onChoose && { onChoose: (choice) => onChoose(open.value!.index, choice) })}
        />
      )}
    </div>
  );
}
