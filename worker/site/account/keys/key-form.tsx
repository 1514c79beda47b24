import { useOwnKey } from '../account.ts';
import { useDraft } from '../form/draft.ts';
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
  const { values, bind, bindEach } = useDraft(initial);
  const { limits } = useOwnKey();
  return (
    <Form action={action} onSend={() => onSave(values.peek())}>
      <NameField {...bind('name')} />
      {isNew && <Choice title="For" options={PURPOSES} {...bind('scopes')} />}
      <Field title="Ends" hint="UTC; empty = never" type="datetime-local" {...bind('expires')} />
      <LimitFields
        names={Object.keys(limits)}
        emptyText={(limit) =>
          limits[limit] == null ? 'no limit' : `at most ${amount(limit, limits[limit])}`
        }
        {...bindEach('limits')}
      />
      <details>
        <summary>Models, networks, metadata</summary>
        <div class="stack">
          <Lines title="Models" hint="one per line; empty = all" {...bind('models')} />
          <Lines
            title="Networks"
            hint="one per line, such as 203.0.113.0/24; empty = all"
            {...bind('networks')}
          />
          <Lines title="Metadata" hint="one pair per line: name: value" {...bind('metadata')} />
        </div>
      </details>
    </Form>
  );
}
