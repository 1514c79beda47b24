import { useSignal } from '@preact/signals';
import { useId, useLayoutEffect } from 'preact/hooks';
import type { RequestField } from '../api/request-field.ts';
import { Button } from '../controls/button.tsx';
import { Select } from '../controls/select.tsx';
import { type ReadValue, readValue, writeValue } from './field-values.ts';

interface FieldControlProps {
  readonly name: string;
  readonly field: RequestField;
  /** Undefined = not sent. */
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

/** One request field with its explanation. An empty control leaves the field out of the request. */
export function FieldControl(props: FieldControlProps) {
  const { field, value } = props;
  return (
    <div class={`parameter ${value === undefined ? '' : 'set'}`}>
      {field.kind === 'flag' || field.kind === 'choice' ? <Choice {...props} /> : <Written {...props} />}
    </div>
  );
}

const Explanation = ({ field }: Pick<FieldControlProps, 'field'>) => (
  <p class="explanation quiet">{field.description}</p>
);

/** The values of a flag: it may be sent as false, because some are true by default. */
const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
]);

function Choice({ name, field, value, onChange }: FieldControlProps) {
  const values = field.kind === 'flag' ? FLAGS.keys() : (field.values ?? []);
  const options = ['', ...values].map((value) => [value, value === '' ? 'default' : value] as const);
  return (
    <>
      <div class="parameter-head">
        <code>{name}</code>
        <Select
          label={name}
          value={String(value ?? '')}
          options={options}
          onChange={(chosen) => onChange(chosen === '' ? undefined : (FLAGS.get(chosen) ?? chosen))}
        />
      </div>
      <Explanation field={field} />
    </>
  );
}

const isLong = ({ kind }: RequestField): boolean => kind === 'texts' || kind === 'json';

/** A slider helps where the whole range is useful. */
const hasSlider = ({ kind, minimum, maximum }: RequestField): boolean =>
  kind === 'number' && minimum !== undefined && maximum !== undefined && maximum - minimum <= 4;

const PLACEHOLDERS: Partial<Record<RequestField['kind'], string>> = {
  texts: 'one text per line, \\n for a line break',
  ids: '12, 345',
  json: '{ }',
};

function Written({ name, field, value, onChange }: FieldControlProps) {
  const id = useId();
  const fault = useSignal<Extract<ReadValue, { fault: string }> | null>(null);
  const written = useSignal<string | null>(null);
  // A preset or the slider has changed the value.
  useLayoutEffect(() => {
    if (document.activeElement?.id === id) return;
    written.value = null;
    fault.value = null;
  }, [value]);
  const read = (text: string) => {
    const result = readValue(field, text);
    written.value = text;
    fault.value = 'fault' in result ? result : null;
    if ('value' in result) onChange(result.value);
  };
  const shared = {
    id,
    spellcheck: false,
    autocomplete: 'off',
    value: written.value ?? writeValue(field.kind, value),
    'aria-invalid': fault.value !== null,
    placeholder: PLACEHOLDERS[field.kind] ?? 'default',
    onInput: (event: { currentTarget: { value: string } }) => read(event.currentTarget.value),
    // What is written stays as it is until the visitor leaves the field.
    onBlur: () => {
      if (fault.value === null) written.value = null;
    },
  } as const;
  return (
    <>
      <div class={isLong(field) ? 'parameter-head long field' : 'parameter-head field'}>
        <label for={id}>
          <code>{name}</code>
        </label>
        {isLong(field) ? (
          <textarea rows={2} {...shared} />
        ) : (
          <input inputMode={/number|integer/.test(field.kind) ? 'decimal' : 'text'} {...shared} />
        )}
      </div>
      {hasSlider(field) && (
        <input
          class="slider"
          type="range"
          aria-label={name}
          min={field.minimum}
          max={field.maximum}
          step={0.01}
          value={typeof value === 'number' ? value : 1}
          onInput={(event) => read(event.currentTarget.value)}
        />
      )}
      {fault.value && (
        <p class="explanation error-text" role="alert">
          {fault.value.fault}{' '}
          {fault.value.allowed !== undefined && (
            <Button text={`Use ${fault.value.allowed}`} onClick={() => read(String(fault.value!.allowed))} />
          )}
        </p>
      )}
      <Explanation field={field} />
    </>
  );
}
