import type { ComponentChildren } from 'preact';
import type { SendOptions } from '../api/client.ts';
import { Button } from '../controls/button.tsx';
import type { NamedRecord } from '../controls/data-table.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { useAccount } from './account.ts';
import { ActionButton, Form } from './form/form.tsx';
import type { FormPart, Texts } from './form/form-fields.ts';

type Body = Readonly<Record<string, unknown>>;

/** Closes the dialog; `changed` = the list is old. */
export type Done = (changed: boolean) => void;

/** What is done with a record beside changing its fields: one request, or a dialog. */
export interface RecordAction {
  /** A verb; `Delete…` opens a dialog. */
  readonly text: string;
  readonly isDanger?: boolean;
  /** The request to the address of the record. */
  readonly request?: Pick<SendOptions, 'method' | 'body'>;
  /** What happens, said after the name. It is typed before the request is sent. */
  readonly consequence?: ComponentChildren;
  readonly dialog?: (onDone: Done) => ComponentChildren;
}

export interface RecordKind<T> {
  /** What a record is, such as `key`. */
  readonly noun: string;
  /** Address of the list. */
  readonly path: string;
  /** Text of the button for a new record; null = the key may make none. */
  readonly create: string | null;
  /** What a record shows above its fields. */
  readonly about?: (record: T) => ComponentChildren;
  readonly actionsOf?: (record: T) => readonly (RecordAction | false)[];
  /** Returns the fields of a record, or of a new one; null = the key may not change it. */
  readonly partsOf: (record: T | null) => ((texts: Texts) => readonly FormPart[]) | null;
  /** Returns the request of what the fields change. Default: POST to the list, PATCH to the record. */
  readonly requestOf?: (record: T | null, body: Body) => { readonly path: string } & SendOptions;
  /** Takes the answer that made a record. */
  readonly onMade?: (answer: unknown) => void;
}

/** What a dialog is for. */
export interface Task<T> {
  /** Null = a new record. */
  readonly record: T | null;
  /** Null = the record with its fields. */
  readonly action: RecordAction | null;
}

interface RecordDialogProps<T> {
  readonly kind: RecordKind<T>;
  readonly task: Task<T>;
  readonly onAction: (action: RecordAction) => void;
  readonly onDone: Done;
}

/** A record, or a new one: its facts, what may be done with it, and its fields. */
export function RecordDialog<T extends NamedRecord>(props: RecordDialogProps<T>) {
  const { kind, task, onAction, onDone } = props;
  const { record, action } = task;
  const account = useAccount();
  const { noun, path, create } = kind;
  const name = record?.name ?? record?.id ?? '';
  const address = record === null ? path : `${path}/${encodeURIComponent(record.id)}`;
  const request = async (options: SendOptions) => {
    await account.ask(address, options);
    onDone(true);
  };
  if (action?.dialog) return <>{action.dialog(onDone)}</>;
  if (action !== null)
    return <ConfirmByName {...{ noun, name, action, onDone }} onSend={() => request(action.request!)} />;
  const save = async (body: Body) => {
    const usual = { path: address, method: record === null ? 'POST' : 'PATCH', body };
    const { path: to, ...options } = kind.requestOf?.(record, body) ?? usual;
    const answer = await account.ask(to, options);
    if (record === null) kind.onMade?.(await answer.json());
    onDone(true);
  };
  const partsOf = kind.partsOf(record);
  const actions = record === null ? [] : (kind.actionsOf?.(record) ?? []);
  return (
    <Dialog title={record === null ? create! : name} class="wide" onClose={() => onDone(false)}>
      <div class="stack">
        {record !== null && kind.about?.(record)}
        {record !== null && (
          <div class="row">
            {actions.map((each) => {
              if (!each) return null;
              const { text, isDanger, consequence } = each;
              return each.request && consequence === undefined ? (
                <ActionButton key={text} text={text} onSend={() => request(each.request!)} />
              ) : (
                <Button
                  key={text}
                  class={isDanger ? 'danger' : ''}
                  text={text}
                  onClick={() => onAction(each)}
                />
              );
            })}
          </div>
        )}
        {partsOf !== null && (
          <Form
            action={record === null ? `${create!.split(' ')[0]} the ${noun}` : 'Save'}
            partsOf={partsOf}
            record={record}
            onSend={save}
          />
        )}
      </div>
    </Dialog>
  );
}

interface ConfirmByNameProps {
  readonly noun: string;
  readonly name: string;
  readonly action: RecordAction;
  readonly onDone: Done;
  readonly onSend: () => Promise<void>;
}

/** Asks for the name, so that no other record is meant than the one that it happens to. */
function ConfirmByName({ noun, name, action, onDone, onSend }: ConfirmByNameProps) {
  const verb = action.text.replace('…', '');
  const typed = {
    name: 'typed',
    title: `Type the name of the ${noun}`,
    input: { dir: 'auto', autocomplete: 'off', spellcheck: false },
  } as const;
  return (
    <Dialog title={`${verb} ${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`} onClose={() => onDone(false)}>
      <Form
        action={`${verb} the ${noun}`}
        isDanger
        partsOf={() => [typed]}
        canSend={(texts) => texts.typed!.trim() === name.trim()}
        onSend={onSend}
      >
        <p>
          <strong>
            <bdi>{name}</bdi>
          </strong>{' '}
          {action.consequence}
        </p>
      </Form>
    </Dialog>
  );
}
