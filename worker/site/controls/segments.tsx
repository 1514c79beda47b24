import { useId } from 'preact/hooks';

interface SegmentsProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, name: string])[];
  readonly onChange: (value: T) => void;
}

/** A choice of few values, all visible. */
export function Segments<T extends string>({ label, value, options, onChange }: SegmentsProps<T>) {
  const name = useId();
  return (
    <fieldset class="segments">
      <legend class="visually-hidden">{label}</legend>
      {options.map(([option, shown]) => (
        <label key={option}>
          <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
          <span>{shown}</span>
        </label>
      ))}
    </fieldset>
  );
}
