interface SelectProps<T extends string> {
  /** Name for screen readers. */
  readonly label: string;
  readonly value: T;
  /** Values with their shown names. */
  readonly options: readonly (readonly [value: T, name: string])[];
  readonly onChange: (value: T) => void;
  readonly class?: string;
}

export const Select = <T extends string>({
  label,
  value,
  options,
  onChange,
  class: name = '',
}: SelectProps<T>) => (
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
