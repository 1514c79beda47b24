import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { h } from 'preact';
import { beforeEach, expect, test, vi } from 'vitest';
import { RequestFailure } from '../../../../worker/site/api/request-failure.ts';
import { FailureNotice } from '../../../../worker/site/playground/failure-notice.tsx';
import { type Session, SessionContext } from '../../../../worker/site/store/session.ts';
import { rendered } from '../support/rendered.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

function shown(failure: RequestFailure) {
  const onRetry = vi.fn();
  const askForKey = signal(false);
  const session = { askForKey } as unknown as Session;
  const notice = h(FailureNotice, { failure, onRetry });
  return { onRetry, askForKey, page: rendered(h(SessionContext.Provider, { value: session }, notice)) };
}

test('a rate limit counts down to its retry, which the visitor makes', async () => {
  const { page, onRetry } = shown(new RequestFailure('rate-limited', 'Limit 1.', { retryAfterMs: 2_500 }));
  await vi.advanceTimersByTimeAsync(100);
  expect(page.text()).toContain('Too many requests');
  expect(() => page.press('Retry in 3 s')).toThrow('no enabled button');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(page.text()).toContain('Retry in 2 s');
  await vi.advanceTimersByTimeAsync(2_000);
  expect(onRetry).not.toHaveBeenCalled();
  page.press('Retry');
  expect(onRetry).toHaveBeenCalledOnce();
});

test('a loading model is retried by itself when its wait is over, once', async () => {
  const { page, onRetry } = shown(new RequestFailure('model-loading', 'Loading.'));
  await vi.advanceTimersByTimeAsync(100);
  expect(page.text()).toMatch(/The model is loading.*Retry in 2 s/);
  expect(onRetry).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(onRetry).toHaveBeenCalledOnce();
});

test.each(['no-key', 'key-refused'] as const)('%s asks for a key in place of a retry', (kind) => {
  const { page, askForKey } = shown(new RequestFailure(kind, 'Why.'));
  page.press('Enter a key');
  expect([askForKey.value, page.text().includes('Retry')]).toEqual([true, false]);
});
