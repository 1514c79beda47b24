import { Bar } from '../../controls/bar.tsx';
import type { LimitHolder } from '../api-objects.ts';
import { amount, limitName } from '../formats.ts';

interface LimitBarProps {
  readonly of: LimitHolder;
  /** Name of a limit of a day or month. */
  readonly limit: string;
  /** Whose limit it is, for screen readers. */
  readonly owner: string;
}

/** A soft limit counts what its hard one counts, and is left out of what is left. */
const countedAs = (limit: string): string => limit.replace('soft_', '');

/** What is used of a limit, as a bar and in numbers. Without a limit, only what is used. */
export function LimitBar({ of: { limits, used, left }, limit, owner }: LimitBarProps) {
  const most = limits[limit] ?? null;
  const spent = used[countedAs(limit)] ?? 0;
  const shown = (value: number) => amount(limit, value);
  if (most === null) return <span class="quiet">{shown(spent)} used, no limit</span>;
  const rest = left[limit] ?? Math.max(0, most - spent);
  return (
    <div class={`limit-bar ${rest === 0 ? 'full' : ''}`}>
      <Bar
        role="meter"
        label={`${limitName(limit)} of ${owner}`}
        value={Math.min(spent, most)}
        max={most}
        text={`${shown(spent)} of ${shown(most)} used`}
      />
      <span>
        <strong>{shown(rest)} left</strong>{' '}
        <span class="quiet">
          {shown(spent)} of {shown(most)} used
        </span>
      </span>
    </div>
  );
}
