import { type Signal, signal } from '@preact/signals';
import { useLayoutEffect, useMemo } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import type { TextEditor } from '../editor/text-editor.ts';
import { AlternativesPopover } from '../tokens/alternatives.tsx';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { spoken } from '../tokens/spoken-token.ts';
import { chooseAlternative, type PlaygroundState, showRun, usePlayground } from './playground-state.ts';

/** Time to move the pointer from a token to its popover. */
const LEAVE_MS = 150;

interface Inspected {
  readonly tokens: PlacedTokens;
  /** Whether it stays open without the mouse. */
  readonly pinned: boolean;
  /** Row that the keyboard has selected; null if the pointer opened the popover. */
  readonly row: number | null;
}

/** Shows the alternatives of one token of the text: under the pointer or reached by keyboard. */
export class TokenInspector {
  readonly inspected: Signal<Inspected | null> = signal(null);
  /** Counts movements of the text. */
  readonly moves: Signal<number> = signal(0);
  readonly #state: PlaygroundState;
  #leaving = 0;

  constructor(state: PlaygroundState) {
    this.#state = state;
  }

  hover = (tokens: PlacedTokens | null): void => {
    window.clearTimeout(this.#leaving);
    if (tokens !== null) this.#show({ tokens, row: null, pinned: false });
    else if (this.inspected.peek()?.pinned === false) this.#leaving = window.setTimeout(this.close, LEAVE_MS);
  };

  tap = (tokens: PlacedTokens | null): void => this.#show(tokens && { tokens, row: null, pinned: true });

  /** Closes when a change of the text has taken the tokens. */
  change = (): void => {
    const inspected = this.inspected.peek();
    if (inspected !== null && this.#editor?.has(inspected.tokens) === false) this.close();
  };

  move = (): void => {
    if (this.inspected.peek() !== null) this.moves.value += 1;
  };

  stay = (): void => window.clearTimeout(this.#leaving);

  close = (): boolean => {
    if (this.inspected.peek() === null) return false;
    this.#show(null);
    return true;
  };

  /** Moves to the next (1) or previous (−1) token. */
  walk = (step: 1 | -1) => (): boolean => {
    const editor = this.#editor;
    const all = editor?.content.tokens ?? [];
    if (editor === null || all.length === 0) return false;
    const start = this.inspected.peek()?.tokens.from ?? editor.cursor;
    const next = step === 1 ? all.find(({ from }) => from > start) : all.findLast(({ from }) => from < start);
    const tokens = next ?? (step === 1 ? all[0]! : all.at(-1)!);
    const { alternatives, name } = tokens.tokens[0]!;
    this.#show({
      tokens,
      row: alternatives.findIndex((alternative) => alternative.name === name),
      pinned: true,
    });
    return true;
  };

  /** What a screen reader says of the token that the keyboard has reached; '' if the pointer has. */
  get announcement(): string {
    const { tokens: placed, row } = this.inspected.value ?? {};
    const token = placed?.tokens[0];
    if (placed === undefined || token === undefined || row === null || row === undefined) return '';
    const alternative = token.alternatives[row];
    if (alternative !== undefined && alternative.name !== token.name)
      return `Alternative ${row + 1} of ${token.alternatives.length}: ${spoken(alternative)}`;
    const all = this.#editor?.content.tokens ?? [];
    const at = all.findIndex(({ from }) => from === placed.from);
    return `Token ${at + 1} of ${all.length}: ${spoken(token)}`;
  }

  /** Moves to another row of the popover, if the keyboard opened it. */
  moveRow = (step: 1 | -1) => (): boolean => {
    const inspected = this.inspected.peek();
    if (inspected === null || inspected.row === null) return false;
    const count = inspected.tokens.tokens[0]!.alternatives.length;
    if (count > 0) this.inspected.value = { ...inspected, row: (inspected.row + step + count) % count };
    return true;
  };

  /** Continues from the selected row, if the keyboard opened the popover. */
  accept = (): boolean => {
    const inspected = this.inspected.peek();
    if (inspected === null || inspected.row === null) return false;
    const [token] = inspected.tokens.tokens;
    const alternative = token!.alternatives[inspected.row];
    this.close();
    if (alternative && alternative.name !== token!.name)
      void chooseAlternative(this.#state, inspected.tokens, alternative);
    return true;
  };

  /** Shows the request of the inspected token, or the last one. */
  showRun = (): boolean => showRun(this.#state, this.inspected.peek()?.tokens ?? null);

  get #editor(): TextEditor | null {
    return this.#state.editor.peek();
  }

  #show(inspected: Inspected | null): void {
    const before = this.inspected.peek();
    const isSame = inspected?.tokens.from === before?.tokens.from && inspected?.row === before?.row;
    if (isSame && inspected?.pinned === before?.pinned) return;
    this.inspected.value = inspected;
    this.#editor?.select(inspected?.tokens ?? null);
  }
}

export function useTokenInspector(): TokenInspector {
  const state = usePlayground();
  return useMemo(() => new TokenInspector(state), [state]);
}

export function InspectorPopover({ inspector }: { readonly inspector: TokenInspector }) {
  const state = usePlayground();
  const inspected = inspector.inspected.value;
  inspector.moves.value;
  useLayoutEffect(() => {
    const press = ({ target }: Event) => {
      if (target instanceof Element && !target.closest('.popover, .text-editor')) inspector.close();
    };
    addEventListener('pointerdown', press);
    return () => removeEventListener('pointerdown', press);
  }, [inspector]);
  const rect = inspected && state.editor.value?.rectOf(inspected.tokens);
  return (
    <>
      {/* The text keeps the focus while the keyboard walks its tokens. */}
      <p class="visually-hidden" aria-live="polite">
        {inspector.announcement}
      </p>
      {inspected && rect && (
        <AlternativesPopover
          tokens={inspected.tokens.tokens}
          anchor={{ getBoundingClientRect: () => rect }}
          active={inspected.row ?? undefined}
          onPointerEnter={inspector.stay}
          onPointerLeave={() => inspector.hover(null)}
          onChoose={(alternative) => {
            inspector.close();
            void chooseAlternative(state, inspected.tokens, alternative);
          }}
        >
          {state.runs.value.some(({ key }) => key === inspected.tokens.run) && (
            <Button
              class="plain"
              text="Request of this text…"
              title="R, or Alt-R in the text"
              onClick={() => {
                inspector.showRun();
                inspector.close();
              }}
            />
          )}
        </AlternativesPopover>
      )}
    </>
  );
}
