import { type Signal, useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { Select } from '../../controls/select.tsx';
import { useOwnKey } from '../account.ts';
import { amount, isMoney, limitName, limitUnit } from '../formats.ts';
import { useAction } from '../resource.ts';
import { FormFault } from '../states.tsx';
import type { KeyDraft } from './key-object.ts';

const PURPOSES = [
  ['completions,models', 'Completions and the list of models'],
  ['completions', 'Only completions'],
  ['models', 'Only the list of models'],
  ['keys', 'Managing keys'],
] as const;

interface KeyFormProps {
  readonly initial: KeyDraft;
  /** A key keeps the purpose that it was made with. */
  readonly isNew: boolean;
  /** Text of the button. */
  readonly action: string;
  /** Sends the fields. @throws RequestFailure */
  readonly onSave: (draft: KeyDraft) => Promise<void>;
}

/** The settings of a key as fields with their units. */
export function KeyForm({ initial, isNew, action, onSave }: KeyFormProps) {
  const draft = useSignal(initial);
  const { isBusy, failure, run } = useAction(() => onSave(draft.peek()));
  const set = (changed: Partial<KeyDraft>) => (draft.value = { ...draft.value, ...changed });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <label class="field labelled">
        <span>Name</span>
        <input
          required
          maxLength={200}
          dir="auto"
          value={draft.value.name}
          onInput={(event) => set({ name: event.currentTarget.value })}
        />
      </label>
      {isNew && (
        <div class="labelled">
          <span>For</span>
          <Select
            label="For"
            value={draft.value.scopes}
            options={PURPOSES}
            onChange={(scopes) => set({ scopes })}
          />
        </div>
      )}
      <label class="field labelled">
        <span>
          Ends <span class="quiet">UTC; empty = never</span>
        </span>
        <input
          type="datetime-local"
          value={draft.value.expires}
          onInput={(event) => set({ expires: event.currentTarget.value })}
        />
      </label>
      <LimitFields draft={draft} />
      <details>
        <summary>Models, networks, metadata</summary>
        <div class="stack">
          <Lines draft={draft} name="models" title="Models" hint="one per line; empty = all" />
          <Lines
            draft={draft}
            name="networks"
            title="Networks"
            hint="one per line, such as 203.0.113.0/24; empty = all"
          />
          <Lines draft={draft} name="metadata" title="Metadata" hint="one pair per line: name: value" />
        </div>
      </details>
      <FormFault failure={failure} />
      <div class="row">
        <Button class="primary" type="submit" text={isBusy ? 'Sending…' : action} disabled={isBusy} />
      </div>
    </form>
  );
}

interface LinesProps {
  readonly draft: Signal<KeyDraft>;
  readonly name: 'models' | 'networks' | 'metadata';
  readonly title: string;
  readonly hint: string;
}

const Lines = ({ draft, name, title, hint }: LinesProps) => (
  <label class="field labelled">
    <span>
      {title} <span class="quiet">{hint}</span>
    </span>
    <textarea
      rows={3}
      spellcheck={false}
      value={draft.value[name]}
      onInput={(event) => (draft.value = { ...draft.value, [name]: event.currentTarget.value })}
    />
  </label>
);

/** All limits that the server knows. An empty one of a new key is that of the key in use. */
function LimitFields({ draft }: { readonly draft: Signal<KeyDraft> }) {
  const { limits } = useOwnKey();
  const set = Object.values(draft.value.limits).filter((text) => text !== '').length;
  return (
    <details>
      <summary>
        Limits <span class="quiet">{set === 0 ? 'none of its own' : `${set} set`}</span>
      </summary>
      <div class="limit-fields">
        {Object.entries(limits).map(([name, most]) => (
          <label key={name} class="field labelled">
            <span>
              {limitName(name)} <span class="quiet">{limitUnit(name)}</span>
            </span>
            <input
              type="number"
              inputMode="decimal"
              min={isMoney(name) ? 0.000001 : 1}
              step={isMoney(name) ? 'any' : 1}
              placeholder={most === null ? 'no limit' : `at most ${amount(name, most)}`}
              value={draft.value.limits[name] ?? ''}
              onInput={(event) => {
                const limits = { ...draft.value.limits, [name]: event.currentTarget.value };
                draft.value = { ...draft.value, limits };
              }}
            />
          </label>
        ))}
      </div>
    </details>
  );
}
