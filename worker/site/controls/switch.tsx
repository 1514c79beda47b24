interface SwitchProps {
  readonly text: string;
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
  /** What it does. */
  readonly title?: string;
}

/** A choice between on and off. */
export const Switch = ({ text, value, onChange, title }: SwitchProps) => (
  <label class="switch" title={title}>
    <input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />
    {text}
  </label>
);
