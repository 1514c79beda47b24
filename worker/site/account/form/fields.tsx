import { useId } from 'preact/hooks';
import { Select } from '../../controls/select.tsx';
import { Switch } from '../../controls/switch.tsx';
import {
  type FormField,
  type FormPart,
  type InputAttributes,
  type InputType,
  kindOf,
  type Texts,
} from './form-fields.ts';

interface Named {
  readonly title: string;
  readonly hint?: string | undefined;
}

const Title = ({ title, hint }: Named) => (
  <span>
    {title}
    {hint !== undefined && <span class="quiet"> {hint}</span>}
  </span>
);

interface FieldProps extends Named, InputAttributes {
  readonly type?: InputType;
  /** Id of the texts that are offered. */
  readonly list?: string;
  readonly value: string;
  readonly onInput: (text: string) => void;
}

/** A field of one line with its name. */
export const Field = ({ title, hint, grows = false, onInput, ...input }: FieldProps) => (
  <label class={`field labelled ${grows ? 'grows' : ''}`}>
    <Title title={title} hint={hint} />
    <input {...input} onInput={(event) => onInput(event.currentTarget.value)} />
  </label>
);

interface ControlProps {
  readonly field: FormField;
  readonly value: string;
  readonly onInput: (text: string) => void;
}

function Control({ field, value, onInput }: ControlProps) {
  const { title, hint, options = [], suggested, input } = field;
  const list = useId();
  const { control, type } = kindOf(field);
  if (control === 'flag')
    return <Switch text={title} value={value !== ''} onChange={(on) => onInput(on ? 'true' : '')} />;
  if (control === 'choice')
    return (
      <div class="labelled">
        <span>{title}</span>
        <Select label={title} options={options} value={value} onChange={onInput} />
      </div>
    );
  if (control === 'lines')
    return (
      <label class="field labelled">
        <Title title={title} hint={hint} />
        <textarea
          rows={3}
          spellcheck={false}
          {...input}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      </label>
    );
  const number = type === 'number' && ({ step: 'any', inputMode: 'decimal' } as const);
  return (
    <>
      <Field
        {...{ title, hint, value, onInput }}
        {...(type && { type })}
        {...number}
        {...input}
        {...(suggested && { list })}
      />
      {suggested && (
        <datalist id={list}>
          {suggested.map((text) => (
            <option key={text} value={text} />
          ))}
        </datalist>
      )}
    </>
  );
}

interface FieldsProps {
  readonly parts: readonly FormPart[];
  readonly texts: Texts;
  readonly onInput: (name: string, text: string) => void;
}

/** The fields of a form, and those that are folded. */
export const Fields = ({ parts, texts, onInput }: FieldsProps) => (
  <>
    {parts.map((part) => {
      if (!('fields' in part)) {
        const { name } = part;
        return (
          <Control key={name} field={part} value={texts[name]!} onInput={(text) => onInput(name, text)} />
        );
      }
      const { summary, fields, isCounted } = part;
      const set = fields.filter(({ name }) => texts[name] !== '').length;
      return (
        <details key={summary}>
          <summary>
            {summary}
            {isCounted && <span class="quiet"> {set === 0 ? 'none of its own' : `${set} set`}</span>}
          </summary>
          <div class="folded">
            <Fields parts={fields} texts={texts} onInput={onInput} />
          </div>
        </details>
      );
    })}
  </>
);
