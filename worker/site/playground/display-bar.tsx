import { Button } from '../controls/button.tsx';
import { Segments } from '../controls/segments.tsx';
import { Switch } from '../controls/switch.tsx';
import { type TokenDisplay, useSession } from '../store/session.ts';
import { TINT_LEVELS } from '../tokens/probability.ts';
import { score, toggleMark, usePlayground } from './playground-state.ts';
import { PromptSize } from './prompt-size.tsx';

const TINTS = [
  ['background', 'Colour'],
  ['underline', 'Underline'],
  ['none', 'Off'],
] as const;

/** How the text shows probabilities, with the scale. */
export function DisplayBar() {
  const state = usePlayground();
  const { editor, isRunning, content, ids } = state;
  const { display } = useSession();
  const set = (change: Partial<TokenDisplay>) => {
    display.value = { ...display.value, ...change };
  };
  const { tint, whiteSpace } = display.value;
  return (
    <div class="display-bar">
      <Segments
        label="Probabilities"
        value={tint}
        options={TINTS}
        onChange={(value) => set({ tint: value })}
      />
      <Switch text="White space" value={whiteSpace} onChange={(shows) => set({ whiteSpace: shows })} />
      <Switch
        text="Token ids"
        title="Sends the prompt as token ids"
        value={ids.isOn.value}
        onChange={(sends) => (ids.isOn.value = sends)}
      />
      <div class="row">
        <Button
          class="plain"
          text={content.value.mark === null ? 'Insert at cursor' : 'Remove mark'}
          title="Alt-M. Complete inserts there; the text after the mark is the suffix."
          disabled={editor.value === null || isRunning.value}
          onClick={() => toggleMark(state)}
        />
        <Button
          class="plain"
          text="Score text"
          title="Shows the probabilities of the text itself, and its perplexity"
          disabled={editor.value === null || isRunning.value || content.value.text === ''}
          onClick={() => void score(state)}
        />
      </div>
      <PromptSize />
      {tint !== 'none' && <Legend underlined={tint === 'underline'} />}
    </div>
  );
}

/** Where the tint begins and ends; the visitor sees what it means before the first completion. */
const Legend = ({ underlined }: { readonly underlined: boolean }) => (
  <p class={`legend row push quiet ${underlined ? 'underlined' : ''}`}>
    <span class="visually-hidden">Tokens are tinted from a probability of </span>25 %
    <span class="legend-scale" aria-hidden="true">
      {TINT_LEVELS.map((level) => (
        <span key={level} class={`token s${level}`} />
      ))}
    </span>
    <span class="visually-hidden">down to </span>1.6 %
  </p>
);
