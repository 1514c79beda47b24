interface BarProps {
  /** Name for screen readers; absent = the figures beside it say the same. */
  readonly label?: string;
  readonly value: number;
  /** Default: 1. */
  readonly max?: number;
  /** The value in words. */
  readonly text?: string;
  readonly role?: 'meter' | 'progressbar';
}

/** How much of something is used or done. */
export const Bar = ({ label, value, max = 1, text, role = 'progressbar' }: BarProps) => (
  // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles have a name and a value
  <span
    class="bar"
    role={role}
    aria-hidden={label === undefined}
    aria-label={label}
    aria-valuemin={0}
    aria-valuemax={max}
    aria-valuenow={value}
    aria-valuetext={text}
    style={{ '--share': `${(100 * value) / max}%` }}
  />
);
