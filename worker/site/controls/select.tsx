/** What a control for one of several values needs. */
export interface ChoiceProps<T extends string> {
  /** Name for screen readers. */
  readonly label: string;
  readonly value: T;
  /** Values with their shown names. */
  readonly options: readonly (readonly [value: T, name: string])[];
  readonly onChange: (value: T) => void;
}

export const Select = <T extends string>({
  label,
  value,
  options,
  onChange,
  class: name = '',
}: ChoiceProps<T> & { readonly class?: string }) => (
  <span class={`select ${name}`}>
    <select
      aria-label={label}
      title={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value as T)}
    >
      {options.map(([option, shown]) => (
        <option key={option} value={option}>
          {shown}
        </option>
      ))}
    </select>
  </span>
);
