import { type Signal, useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useId, useMemo, useRef } from 'preact/hooks';
import type { PromptToken } from '../api/completion-stream.ts';
import type { TokenizedText } from '../api/whole-choices.ts';
import { type TokenDisplay, useSession } from '../store/session.ts';
import { AlternativesPopover, type Choose } from './alternatives.tsx';
import { leadOf, type PlacedTokens, TokenPlacer } from './placed-tokens.ts';
import { jointLogprob, tintClass } from './probability.ts';
import { spoken } from './spoken-token.ts';
import { TokenName } from './token-name.tsx';

export const placedTokens = ({ text, tokens }: TokenizedText): readonly PlacedTokens[] =>
  new TokenPlacer(0).place(
    text,
    tokens,
    tokens.map(({ offset }) => offset),
  );

/** Returns the token `step` places after the selected one, from the ends if none; null beyond. */
export function tokenBeside(
  placed: readonly PlacedTokens[],
  selected: PlacedTokens | null,
  step: 1 | -1,
): PlacedTokens | null {
  const at = placed.findIndex(({ from }) => from === selected?.from);
  const next = at >= 0 ? at + step : step > 0 ? 0 : placed.length - 1;
  return placed[next] ?? null;
}

const STEPS: Readonly<Record<string, 1 | -1>> = { '[': -1, ArrowLeft: -1, ']': 1, ArrowRight: 1 };

interface TokenListProps {
  readonly content: TokenizedText;
  readonly label: string;
  /** The token that is selected by a click or with [ and ]. */
  readonly cursor: Signal<PlacedTokens | null>;
  /** Tokens that are marked as different. */
  readonly isMarked?: (token: PromptToken) => boolean;
  readonly onChoose?: (tokens: PlacedTokens, ...choice: Parameters<Choose>) => void;
}

/**
 * Tokens with tints by probability. The selected one, and the one under the pointer, show their alternatives.
 */
export function TokenList({ content, label, cursor, isMarked = () => false, onChoose }: TokenListProps) {
  const { display } = useSession();
  const list = useRef<HTMLSpanElement>(null);
  const hovered = useSignal<PlacedTokens | null>(null);
  const id = useId();
  const placed = useMemo(() => placedTokens(content), [content]);
  /** Preact passes over an option that is the same object: a text that grows costs what is new. */
  const kept = useRef(new Map<number, KeptOption>());
  const { tint, whiteSpace } = display.value;
  if (placed.length === 0)
    return (
      <span>
        <TokenName name={content.text} whiteSpace={whiteSpace} />
      </span>
    );
  const at = placed.findIndex(({ from }) => from === (hovered.value ?? cursor.value)?.from);
  const shown = placed[at];
  const anchor = list.current?.children[at]?.lastElementChild;
  const press = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.stopPropagation();
    cursor.value = tokenBeside(placed, cursor.value, step);
  };
  return (
    <span
      class={tint === 'underline' ? 'underlined' : ''}
      onPointerLeave={() => {
        hovered.value = null;
      }}
    >
      <span
        ref={list}
        role="listbox"
        aria-label={label}
        aria-activedescendant={cursor.value ? `${id}-${cursor.value.from}` : undefined}
        tabIndex={0}
        onKeyDown={press}
      >
        {placed.map((place) => {
          const { from, tokens } = place;
          const look = {
            isSelected: from === cursor.value?.from,
            isShown: from === shown?.from,
            isMarked: tokens.some(isMarked),
            tint,
            whiteSpace,
          };
          const before = kept.current.get(from);
          const signs = [place.to, ...Object.values(look)].join();
          if (before?.signs === signs && before.tokens.every((token, at) => token === tokens[at]))
            return before.option;
          const option = (
            <Option
              key={from}
              id={`${id}-${from}`}
              text={content.text.slice(from, place.to)}
              logprob={jointLogprob(tokens)}
              look={look}
              onPointerEnter={() => (hovered.value = place)}
              onClick={() => (cursor.value = look.isSelected ? null : place)}
            />
          );
          kept.current.set(from, { signs, tokens, option });
          return option;
        })}
      </span>
      {shown && anchor && (
        <AlternativesPopover
          tokens={shown.tokens}
          anchor={anchor}
          {...(onChoose && { onChoose: (choice) => onChoose(shown, choice) })}
        />
      )}
    </span>
  );
}

interface KeptOption {
  readonly signs: string;
  readonly tokens: readonly PromptToken[];
  readonly option: VNode;
}

interface OptionProps {
  readonly id: string;
  readonly text: string;
  readonly logprob: number | null;
  readonly look: {
    readonly isSelected: boolean;
    readonly isShown: boolean;
    readonly isMarked: boolean;
    readonly tint: TokenDisplay['tint'];
    readonly whiteSpace: boolean;
  };
  readonly onPointerEnter: () => void;
  readonly onClick: () => void;
}

function Option({ id, text, logprob, look, ...events }: OptionProps) {
  const { isSelected, isShown, isMarked, tint, whiteSpace } = look;
  const tinted = tint === 'none' ? 'token' : tintClass(logprob);
  const lead = leadOf(text);
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus and names the active token.
    <span
      id={id}
      role="option"
      aria-selected={isSelected}
      aria-label={spoken({ name: text, logprob })}
      {...events}
    >
      <TokenName name={text.slice(0, lead)} whiteSpace={whiteSpace} />
      <span class={`${tinted} ${isShown ? 'selected' : ''} ${isMarked ? 'marked' : ''}`}>
        <TokenName name={text.slice(lead)} whiteSpace={whiteSpace} />
      </span>
    </span>
  );
}
