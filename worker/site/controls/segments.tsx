import { useId } from 'preact/hooks';
import type { ChoiceProps } from './select.tsx';

/** A choice of few values, all visible. */
export function Segments<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
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
