import './compare.css';
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { isOverlaid } from '../controls/dialog.tsx';
import { Lazy } from '../controls/lazy.tsx';
import { NumberField } from '../controls/number-field.tsx';
import { Segments } from '../controls/segments.tsx';
import { Switch } from '../controls/switch.tsx';
import { useListener } from '../controls/use-listener.ts';
import { OpenInMenu } from '../copy/open-in-menu.tsx';
import { takeCarried, useSession } from '../store/session.ts';
import {
  type CompareState,
  compare,
  EXAMPLES,
  MODES,
  openComparison,
  promptsOf,
  scoreText,
} from './compare-state.ts';
import { Completions } from './completions.tsx';
import { SideForm } from './side-form.tsx';

/** The same prompt against two models, dialects or sets of parameters. */
export function CompareView() {
  const session = useSession();
  const state = useSignal<CompareState | null>(null);
  useEffect(() => {
    void openComparison(session).then((opened) => {
      const carried = takeCarried(session, 'compare');
      if (carried) {
        const prompt = carried.map(({ text }) => text).join('');
        opened.settings.value = { ...opened.settings.peek(), prompt, prompts: null };
        for (const side of opened.sides) side.clear();
      }
      state.value = opened;
    });
  }, []);
  return state.value && <OpenedComparison state={state.value} />;
}

function OpenedComparison({ state }: { readonly state: CompareState }) {
  useListener('keydown', (event) => {
    if (isOverlaid()) return;
    const completes = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
    if (completes) run(state);
    else if (event.key === 'Escape') for (const side of [...state.sides, ...state.scored]) side.stop();
  });
  const { mode } = state;
  return (
    <div class="compare">
      <h1 class="visually-hidden">Compare</h1>
      <Segments
        label="What is compared"
        value={mode.value}
        options={MODES}
        onChange={(chosen) => (mode.value = chosen)}
      />
      {mode.value === 'samples' && <Samples state={state} />}
      {mode.value === 'text' && (
        <Lazy
          key="text"
          load={async () => (await import('./text-comparison.tsx')).TextComparison}
          props={{ state }}
        />
      )}
      {mode.value === 'choices' && (
        <Lazy
          key="choices"
          load={async () => (await import('../score/score-view.tsx')).ScoreView}
          props={{}}
        />
      )}
    </div>
  );
}

function run(state: CompareState): void {
  if (state.mode.peek() === 'samples') compare(state);
  if (state.mode.peek() === 'text') scoreText(state);
}

/** The samples of two requests. */
function Samples({ state }: { readonly state: CompareState }) {
  const { result: left } = state.sides[0];
  const { result: right } = state.sides[1];
  const isEmpty = [left, right].every(
    ({ value }) => value.samples.length === 0 && !value.running && !value.failure,
  );
  return (
    <>
      <SubjectForm state={state} />
      <div class="sides">
        <SideForm state={state} index={0} />
        <SideForm state={state} index={1} />
      </div>
      {isEmpty ? <Examples state={state} /> : <Completions state={state} />}
    </>
  );
}

const MAX_SAMPLES = 64;

/** The prompt and the number of samples. */
function SubjectForm({ state }: { readonly state: CompareState }) {
  const { settings, sides } = state;
  const { prompt, n, prompts = null } = settings.value;
  const isReady = !promptsOf(settings.value).includes('');
  const running = sides.some(({ result }) => result.value.running);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => field.current?.focus({ preventScroll: true }), []);
  return (
    <section class="subject stack" aria-label="Prompt and samples">
      {prompts === null && (
        <div class="field">
          <textarea
            ref={field}
            rows={3}
            aria-label="Prompt"
            placeholder="The beginning of a text, for both sides"
            value={prompt}
            onInput={(event) => {
              settings.value = { ...settings.value, prompt: event.currentTarget.value };
            }}
          />
        </div>
      )}
      <div class="row">
        <Button
          class="primary"
          icon="play"
          text="Compare"
          disabled={!isReady}
          onClick={() => compare(state)}
        />
        <Button
          icon="stop"
          text="Stop"
          disabled={!running}
          onClick={() => {
            for (const side of sides) side.stop();
          }}
        />
        <span class="row">
          <NumberField
            name="n"
            value={n}
            onChange={(value = 1) => {
              settings.value = { ...settings.value, n: Math.min(MAX_SAMPLES, value) };
            }}
          />
          <span class="quiet">samples per side</span>
        </span>
        <Switch
          text="Two prompts"
          value={prompts !== null}
          onChange={(isOn) => {
            settings.value = {
              ...settings.value,
              prompts: isOn ? [prompt, prompt] : null,
              prompt: prompts?.[0] ?? prompt,
            };
          }}
        />
        <OpenInMenu
          label="Open in"
          from="compare"
          parts={() => [{ text: promptsOf(settings.peek())[0], tokens: [] }]}
          disabled={!isReady}
        />
        <span class="quiet">Ctrl-Enter compares, Esc stops</span>
      </div>
    </section>
  );
}

function Examples({ state }: { readonly state: CompareState }) {
  return (
    <section class="compare-examples" aria-labelledby="examples-heading">
      <h2 id="examples-heading" class="quiet">
        Or start with an example
      </h2>
      <ul>
        {EXAMPLES.map(({ title, about, settings }) => (
          <li key={title}>
            <button
              type="button"
              class="card compare-example"
              onClick={() => {
                state.settings.value = settings;
                compare(state);
              }}
            >
              <strong>{title}</strong>
              <span class="quiet">{about}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
