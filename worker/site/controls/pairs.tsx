import type { ComponentChildren } from 'preact';

interface PairsProps {
  readonly of: readonly (readonly [string, ComponentChildren])[];
  /** Their look. */
  readonly class?: string;
}

/** Names with their values. Those without a value are left out. */
export const Pairs = ({ of, class: look = 'pairs' }: PairsProps) => (
  <dl class={`${look} figures`}>
    {of.map(
      ([name, value]) =>
        value !== null && (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
    )}
  </dl>
);
