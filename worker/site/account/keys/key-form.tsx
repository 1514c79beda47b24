import { useSignal } from '@preact/signals';
import { useOwnKey } from '../account.ts';
import { Choice, Field, Lines, NameField } from '../form/fields.tsx';
import { Form } from '../form/form.tsx';
import { LimitFields } from '../form/limit-fields.tsx';
import { amount } from '../formats.ts';
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
  const { limits } = useOwnKey();
  const set = (changed: Partial<KeyDraft>) => (draft.value = { ...draft.value, ...changed });
  const { name, scopes, expires, models, networks, metadata } = draft.value;
  return (
    <Form action={action} onSend={() => onSave(draft.peek())}>
      <NameField value={name} onInput={(text) => set({ name: text })} />
      {isNew && (
        <Choice label="For" value={scopes} options={PURPOSES} onChange={(next) => set({ scopes: next })} />
      )}
      <Field
        title="Ends"
        hint="UTC; empty = never"
        type="datetime-local"
        value={expires}
        onInput={(text) => set({ expires: text })}
      />
      <LimitFields
        names={Object.keys(limits)}
        texts={draft.value.limits}
        onChange={(limit, text) => set({ limits: { ...draft.value.limits, [limit]: text } })}
        emptyText={(limit) =>
          limits[limit] == null ? 'no limit' : `at most ${amount(limit, limits[limit])}`
        }
      />
      <details>
        <summary>Models, networks, metadata</summary>
        <div class="stack">
          <Lines
            title="Models"
            hint="one per line; empty = all"
            value={models}
            onInput={(text) => set({ models: text })}
          />
          <Lines
            title="Networks"
            hint="one per line, such as 203.0.113.0/24; empty = all"
            value={networks}
            onInput={(text) => set({ networks: text })}
          />
          <Lines
            title="Metadata"
            hint="one pair per line: name: value"
            value={metadata}
            onInput={(text) => set({ metadata: text })}
          />
        </div>
      </details>
    </Form>
  );
}
