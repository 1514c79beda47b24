import { type Signal, useSignal } from '@preact/signals';
import { useId, useMemo, useRef } from 'preact/hooks';
import type { PromptToken } from '../api/completion-stream.ts';
import type { TokenizedText } from '../api/whole-choices.ts';
import { useSession } from '../store/session.ts';
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
          const { from, to, tokens } = place;
          const logprob = jointLogprob(tokens);
          const text = content.text.slice(from, to);
          const selected = from === cursor.value?.from;
          const classes = [
            tint === 'none' ? 'token' : tintClass(logprob),
            ...(from === shown?.from ? ['selected'] : []),
            ...(tokens.some(isMarked) ? ['marked'] : []),
          ];
          const lead = leadOf(text);
          return (
            // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus and names the active token.
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys.
            <span
              key={from}
              id={`${id}-${from}`}
              role="option"
              aria-selected={selected}
              aria-label={spoken({ name: text, logprob })}
              onPointerEnter={() => {
                hovered.value = place;
              }}
              onClick={() => {
                cursor.value = selected ? null : place;
              }}
            >
              <TokenName name={text.slice(0, lead)} whiteSpace={whiteSpace} />
              <span class={classes.join(' ')}>
                <TokenName name={text.slice(lead)} whiteSpace={whiteSpace} />
              </span>
            </span>
          );
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
