import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Alternative, PromptToken } from '../api/completion-stream.ts';
import { hexBytes, isPartial, tokenBytes } from '../api/token-bytes.ts';
import { Bar } from '../controls/bar.tsx';
import { percent, probabilityBeside, probabilityOf } from './probability.ts';
import { TokenName } from './token-name.tsx';

export type Choose = (alternative: Alternative) => void;

interface AlternativesProps {
  readonly token: PromptToken;
  /** Absent = the alternatives are only shown. */
  readonly onChoose?: Choose;
  /** Row that the keyboard has selected. */
  readonly active?: number | undefined;
}

/** Lists a token's alternatives with probability, bytes and id, the chosen one marked. */
export function Alternatives({ token, onChoose, active }: AlternativesProps) {
  const others = probabilityBeside(token.alternatives);
  return (
    <>
      <p class="alternatives-head figures">
        <code>
          <TokenName name={token.name} whiteSpace />
        </code>
        <span class="quiet">
          {token.id !== null && `id ${token.id} · `}
          {hexBytes(tokenBytes(token.name)) || 'no bytes'}
        </span>
      </p>
      {token.alternatives.length === 0 && <p class="quiet">This token has no probability.</p>}
      <ol class="alternatives figures">
        {token.alternatives.map((alternative, index) => (
          <li key={alternative.name}>
            <AlternativeRow
              alternative={alternative}
              number={index + 1}
              chosen={alternative.name === token.name}
              active={active === index}
              {...(onChoose && { onChoose })}
            />
          </li>
        ))}
        {token.alternatives.length > 0 && (
          <li class="alternative quiet">
            <span>all others</span>
            <Bar value={others} />
            <span>{percent(Math.log(others))}</span>
          </li>
        )}
      </ol>
    </>
  );
}

interface RowProps {
  readonly alternative: Alternative;
  readonly number: number;
  readonly chosen: boolean;
  readonly active: boolean;
  readonly onChoose?: Choose;
}

function AlternativeRow({ alternative, number, chosen, active, onChoose }: RowProps) {
  const { name, logprob, id } = alternative;
  const content = (
    <>
      <code>
        <TokenName name={name} whiteSpace />
      </code>
      <Bar value={probabilityOf(logprob)} />
      <span>{percent(logprob)}</span>
      <span class="quiet bytes">{hexBytes(tokenBytes(name))}</span>
      <span class="quiet id">{id !== null && `id ${id}`}</span>
    </>
  );
  const state = `${chosen ? 'chosen' : ''} ${active ? 'active' : ''}`;
  // The prompt is text, and a part of a character is none.
  if (chosen || !onChoose || isPartial(name)) return <div class={`alternative ${state}`}>{content}</div>;
  return (
    <button
      type="button"
      class={`alternative ${state}`}
      title={`Use this token and continue from it (${number})`}
      // The token keeps the focus, so that its popover stays open for the click.
      onPointerDown={(event) => event.preventDefault()}
      onClick={() => onChoose(alternative)}
    >
      {content}
    </button>
  );
}

interface PopoverProps extends Omit<AlternativesProps, 'token'> {
  /** One token, or several that form one character together. */
  readonly tokens: readonly PromptToken[];
  readonly anchor: { getBoundingClientRect(): Pick<DOMRect, 'left' | 'top' | 'bottom'> };
  readonly onPointerEnter?: () => void;
  readonly onPointerLeave?: () => void;
  /** Further commands. */
  readonly children?: ComponentChildren;
}

/** Distance of a popover from the edges of the window, in pixels. */
const MARGIN = 8;

/** The alternatives of a token in a popover below it, or above without room. It hides with the token. */
export function AlternativesPopover({
  tokens,
  anchor,
  onPointerEnter,
  onPointerLeave,
  children,
  ...options
}: PopoverProps) {
  const element = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const popover = element.current!;
    const ended = new AbortController();
    const follow = () => {
      const { left, top, bottom } = anchor.getBoundingClientRect();
      const view = popover.closest('.reading, main')!.getBoundingClientRect();
      popover.hidden = bottom < view.top || top > view.bottom;
      const { width, height } = popover.getBoundingClientRect();
      const fits = bottom + height + MARGIN <= innerHeight;
      popover.style.left = `${Math.max(MARGIN, Math.min(left, innerWidth - width - MARGIN))}px`;
      popover.style.top = `${fits ? bottom : Math.max(MARGIN, top - height)}px`;
    };
    follow();
    for (const event of ['scroll', 'resize'])
      addEventListener(event, follow, { capture: true, signal: ended.signal });
    return () => ended.abort();
  });
  return (
    <section
      ref={element}
      class="popover"
      aria-label="Alternatives"
      onPointerEnter={onPointerEnter}
      onPointerLeave={onPointerLeave}
    >
      {tokens.map((token, index) => (
        <Alternatives key={`${index} ${token.name}`} token={token} {...options} />
      ))}
      {children}
    </section>
  );
}
