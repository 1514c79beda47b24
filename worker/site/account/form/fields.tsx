import { type ChoiceProps, Select } from '../../controls/select.tsx';

interface Named {
  readonly title: string;
  /** Unit, and what an empty field means. */
  readonly hint?: string;
}

interface FieldProps extends Named {
  readonly type?: 'date' | 'datetime-local' | 'number' | 'search' | 'text';
  readonly required?: boolean;
  readonly min?: number;
  readonly max?: number;
  readonly step?: 'any' | 1;
  readonly inputMode?: 'decimal';
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly placeholder?: string;
  readonly list?: string;
  readonly dir?: 'auto';
  readonly autocomplete?: 'off';
  readonly spellcheck?: boolean;
  /** Whether it takes the room beside others. */
  readonly grows?: boolean;
  readonly value: string;
  readonly onInput: (text: string) => void;
}

const Title = ({ title, hint }: Named) => (
  <span>
    {title}
    {hint !== undefined && <span class="quiet"> {hint}</span>}
  </span>
);

/** A field of one line with its name. */
export const Field = ({ title, hint, grows = false, onInput, ...input }: FieldProps) => (
  <label class={`field labelled ${grows ? 'grows' : ''}`}>
    <Title title={title} {...(hint !== undefined && { hint })} />
    <input {...input} onInput={(event) => onInput(event.currentTarget.value)} />
  </label>
);

/** The name of a record for people. */
export const NameField = (props: Pick<FieldProps, 'value' | 'onInput'>) => (
  <Field title="Name" required maxLength={200} dir="auto" {...props} />
);

interface LinesProps extends Named {
  readonly rows?: number;
  readonly value: string;
  readonly onInput: (text: string) => void;
}

/** A field of several lines with its name. */
export const Lines = ({ title, hint, rows = 3, value, onInput }: LinesProps) => (
  <label class="field labelled">
    <Title title={title} {...(hint !== undefined && { hint })} />
    <textarea
      rows={rows}
      spellcheck={false}
      value={value}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  </label>
);

interface ChoiceFieldProps extends Omit<ChoiceProps<string>, 'label' | 'onChange'> {
  readonly title: string;
  readonly onInput: (value: string) => void;
}

/** A choice with its name above it. */
export const Choice = ({ title, onInput, ...props }: ChoiceFieldProps) => (
  <div class="labelled">
    <span>{title}</span>
    <Select label={title} onChange={onInput} {...props} />
  </div>
);

interface FlagProps {
  readonly title: string;
  readonly value: boolean;
  readonly onInput: (value: boolean) => void;
}

export const Flag = ({ title, value, onInput }: FlagProps) => (
  <label class="switch">
    <input type="checkbox" checked={value} onChange={(event) => onInput(event.currentTarget.checked)} />
    {title}
  </label>
);
