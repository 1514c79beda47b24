import type { ComponentChildren } from 'preact';
import type { RequestFailure } from '../api/request-failure.ts';
import { Button } from '../controls/button.tsx';
import { FailureNotice } from '../playground/failure-notice.tsx';
import { clockText } from './formats.ts';
import type { Resource } from './resource.ts';

/** What a section shows instead of data, or above data that may be old. */

interface FailureProps {
  readonly failure: RequestFailure;
  readonly onRetry: () => void;
}

/** A key may be valid and still not allowed to do this: its scope, its network, or a suspended account. */
export function Failure({ failure, onRetry }: FailureProps) {
  if (failure.status !== 403) return <FailureNotice failure={failure} onRetry={onRetry} />;
  return (
    <div class="notice row spread" role="alert">
      <div>
        <strong>This key may not do this</strong>
        <p>{failure.message}</p>
      </div>
      <Button icon="retry" text="Retry" onClick={onRetry} />
    </div>
  );
}

export const Empty = ({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}) => (
  <div class="account-empty">
    <strong>{title}</strong>
    <p class="quiet">{children}</p>
  </div>
);

interface LoadedProps<T> {
  readonly of: Resource<T>;
  readonly children: (value: T) => ComponentChildren;
}

/** Shows a value, its loading, or why there is none. A failure after that stands above the old value. */
export function Loaded<T>({ of: { value, failure, isLoading, at, reload }, children }: LoadedProps<T>) {
  return (
    <>
      {failure !== null && (
        <>
          <Failure failure={failure} onRetry={reload} />
          {value !== null && <p class="quiet">The figures below are those of {clockText(at)}.</p>}
        </>
      )}
      {value !== null && children(value)}
      {value === null && isLoading && (
        <div class="account-loading stack" role="status">
          <span class="visually-hidden">Loading</span>
          {[0, 1, 2].map((line) => (
            <span key={line} aria-hidden="true" />
          ))}
        </div>
      )}
    </>
  );
}
