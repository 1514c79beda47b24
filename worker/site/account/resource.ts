import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { failureFrom, type RequestFailure } from '../api/request-failure.ts';
import { askAll, useAccount } from './account.ts';

/** What a section shows of the server, and how its last request ended. */
export interface Resource<T> {
  /** Of the last request that succeeded; null before it. */
  readonly value: T | null;
  /** Of the last request; null = it succeeded or runs. */
  readonly failure: RequestFailure | null;
  readonly isLoading: boolean;
  /** Server's Unix milliseconds of the value. */
  readonly at: number;
  readonly reload: () => void;
}

interface Loaded<T> {
  readonly value: T | null;
  readonly at: number;
  readonly failure: RequestFailure | null;
  readonly isLoading: boolean;
}

/** After a failure, the next regular request waits so many times longer. */
const FAILED_FACTOR = 4;

/**
 * Loads what a section shows: at first, if `key` changes, when the page is seen again or online again, and
 * regularly. A failure keeps the last value.
 * @param everyMs time between two requests while the page is visible, or what it is by the last value; null =
 *   none
 */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  key: string,
  everyMs: number | null | ((last: T) => number | null) = null,
): Resource<T> {
  const { clock } = useAccount();
  const state = useSignal<Loaded<T>>({ value: null, at: 0, failure: null, isLoading: true });
  const round = useSignal(0);
  const latest = useRef(load);
  latest.current = load;
  const reload = () => {
    round.value += 1;
  };
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wake = () => {
      if (!document.hidden) reload();
    };
    /** @param longer so many times, and at least `leastMs` */
    const again = (last: T | null, longer = 1, leastMs = 0) => {
      const ms = typeof everyMs !== 'function' ? everyMs : last === null ? null : everyMs(last);
      if (ms !== null) timer = setTimeout(wake, Math.max(ms * longer, leastMs));
    };
    state.value = { ...state.peek(), isLoading: true };
    latest.current(ended.signal).then(
      (value) => {
        if (ended.signal.aborted) return;
        state.value = { value, at: clock.now(), failure: null, isLoading: false };
        again(value);
      },
      (thrown: unknown) => {
        if (ended.signal.aborted) return;
        const failure = failureFrom(thrown);
        state.value = { ...state.peek(), failure, isLoading: false };
        again(state.peek().value, FAILED_FACTOR, failure.retryAfterMs ?? 0);
      },
    );
    addEventListener('online', wake, { signal: ended.signal });
    addEventListener('visibilitychange', wake, { signal: ended.signal });
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [key, typeof everyMs === 'function' ? null : everyMs, round.value]);
  return { ...state.value, reload };
}

/** Loads all pages of a list. @param everyMs time between two readings; null = it is read once */
export function useList<T extends { readonly id: string }>(path: string, everyMs: number | null = null) {
  const account = useAccount();
  return useResource<readonly T[]>((signal) => askAll<T>(account, path, signal), path, everyMs);
}

/** Returns the server's Unix milliseconds, anew each second. */
export function useServerNow(): number {
  const { clock } = useAccount();
  const tick = useSignal(0);
  useEffect(() => {
    const timer = setInterval(() => (tick.value += 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  void tick.value;
  return clock.now();
}

/**
 * One request of a form: it runs once at a time, and its failure stays until the next attempt. If the form is
 * closed before, the account shows the failure.
 */
export function useAction(send: () => Promise<void>): {
  readonly isBusy: boolean;
  readonly failure: RequestFailure | null;
  readonly run: () => void;
} {
  const { lateFailure } = useAccount();
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => void (isShown.current = false);
  }, []);
  const isBusy = useSignal(false);
  const failure = useSignal<RequestFailure | null>(null);
  const run = async () => {
    if (isBusy.peek()) return;
    isBusy.value = true;
    failure.value = null;
    try {
      await send();
    } catch (thrown) {
      (isShown.current ? failure : lateFailure).value = failureFrom(thrown);
    }
    isBusy.value = false;
  };
  return { isBusy: isBusy.value, failure: failure.value, run: () => void run() };
}
