import { REQUEST_FIELDS } from 'virtual:request-fields';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface NumberFieldProps {
  /** Name of a request field. */
  readonly name: string;
  /** Undefined = the default of the dialect. */
  readonly value: number | undefined;
  readonly onChange: (value: number | undefined) => void;
}

/** A request field with a number. Its explanation and range come from the request's schema. */
export function NumberField({ name, value, onChange }: NumberFieldProps) {
  const { description, kind, minimum, maximum } = REQUEST_FIELDS[name]!;
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    const { current } = field;
    // What is being typed stays: `0.` is 0 on its way to 0.5.
    if (current === null || current === document.activeElement) return;
    current.value = String(value ?? '');
    current.ariaInvalid = 'false';
  }, [value]);
  return (
    <label class="number-field" title={description}>
      <span class="quiet">{name}</span>
      <span class="field">
        <input
          ref={field}
          type="number"
          inputMode="decimal"
          placeholder="default"
          step={kind === 'integer' ? 1 : 'any'}
          min={minimum}
          max={maximum}
          onBlur={({ currentTarget }) => {
            if (currentTarget.validity.valid) currentTarget.value = String(value ?? '');
          }}
          onInput={(event) => {
            const { value, valueAsNumber, validity } = event.currentTarget;
            event.currentTarget.setAttribute('aria-invalid', String(!validity.valid));
            if (validity.valid) onChange(value === '' ? undefined : valueAsNumber);
          }}
        />
      </span>
    </label>
  );
}
