import { useSignal } from '@preact/signals';
import { isOverlaid } from '../controls/dialog.tsx';
import { KeysDialog } from '../controls/keys-dialog.tsx';
import { Lazy } from '../controls/lazy.tsx';
import { useListener } from '../controls/use-listener.ts';
import { ActionBar } from './action-bar.tsx';
import { Arrival } from './arrival.tsx';
import { PlaygroundDialogs } from './dialogs.tsx';
import { FailureNotice } from './failure-notice.tsx';
import { ParametersPanel } from './parameters-panel.tsx';
import {
  complete,
  listTokens,
  type PlaygroundState,
  presetOf,
  takeChoice,
  toggleUnderline,
  usePlayground,
} from './playground-state.ts';
import { TextPanel } from './text-panel.tsx';
import { type TokenInspector, useTokenInspector } from './token-inspector.tsx';

const KEYS: readonly (readonly [keys: string, action: string])[] = [
  ['Ctrl Enter', 'Complete the text'],
  ['Esc', 'Stop, or close the alternatives'],
  ['Ctrl Z', 'Take back the last completion or change'],
  ['Ctrl Shift Z', 'Bring it back'],
  [']  [', 'Go to the next or previous token; with Alt while the text has the cursor'],
  ['↓  ↑', 'Select an alternative'],
  ['Tab, Enter', 'Continue from the selected alternative'],
  ['Alt M', 'Set or remove the insertion mark'],
  ['U', 'Switch between colours and underlines; with Alt in the text'],
  ['R', 'Show the request of the token, or the last one; with Alt in the text'],
  ['1 … 9', 'Take one of several choices; with Alt in the text'],
  ['L', 'List all tokens; with Alt in the text'],
  ['?', 'Show these keys'],
];

export function Playground() {
  const state = usePlayground();
  const keysOpen = useSignal(false);
  const inspector = useTokenInspector();
  useListener('keydown', (event) => {
    if (event.defaultPrevented || isOverlaid()) return;
    if (event.key === '?' && !isTyping(event)) keysOpen.value = true;
    else if (pressed(event, state, inspector)) event.preventDefault();
  });
  const phase = state.generation.phase.value;
  return (
    <div class="playground">
      <h1 class="visually-hidden">Playground</h1>
      <div class="text-column">
        <TextPanel inspector={inspector} />
        {phase.name === 'failed' && (
          <FailureNotice key={phase.at} failure={phase.failure} onRetry={() => void complete(state)} />
        )}
        <Arrival />
        {state.ids.isOn.value && (
          <Lazy load={async () => (await import('./id-field.tsx')).IdField} props={{}} />
        )}
        {state.choices.value && (
          <Lazy
            load={async () => (await import('./choices-panel.tsx')).ChoicesPanel}
            props={{ offered: state.choices.value }}
          />
        )}
        <ActionBar />
      </div>
      <aside class="side" aria-label="Parameters">
        <ParametersPanel parameters={state.parameters} preset={presetOf(state)} />
      </aside>
      <PlaygroundDialogs />
      {keysOpen.value && <KeysDialog keys={KEYS} onClose={() => (keysOpen.value = false)} />}
    </div>
  );
}

const isTyping = (event: KeyboardEvent): boolean => {
  const target = event.composedPath()[0];
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
};

/** Returns whether the key did something. */
function pressed(event: KeyboardEvent, state: PlaygroundState, inspector: TokenInspector): boolean {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    void complete(state);
    return true;
  }
  if (event.key === 'Escape') {
    if (inspector.close()) return true;
    state.generation.stop();
    return state.isRunning.peek();
  }
  if (isTyping(event) || event.altKey || event.ctrlKey || event.metaKey) return false;
  switch (event.key) {
    case 'u':
      return toggleUnderline(state);
    case 'r':
      return inspector.showRun();
    case 'l':
      return listTokens(state);
    case ']':
      return inspector.walk(1)();
    case '[':
      return inspector.walk(-1)();
    case 'ArrowDown':
      return inspector.moveRow(1)();
    case 'ArrowUp':
      return inspector.moveRow(-1)();
    case 'Enter':
    case 'Tab':
      return inspector.accept();
    default:
      return /^[1-9]$/.test(event.key) && takeChoice(state, Number(event.key) - 1);
  }
}
