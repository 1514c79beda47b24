import type { ComponentChildren } from 'preact';

/** Names with their values. Those without a value are left out. */
export const Pairs = ({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl class="pairs figures">
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
