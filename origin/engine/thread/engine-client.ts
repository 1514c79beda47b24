import { Worker } from 'node:worker_threads';
import type { BugTrace } from '@continuo/shared/error-details.ts';
import { backOff } from '@continuo/shared/retry.ts';
import { freeAfterThread } from '../../process/engine-locks.ts';
import {
  type ChildDeath,
  SupervisedChild,
  THREAD_MEMORY,
  threadLife,
} from '../../process/supervised-child.ts';
import type { EngineCommand, EngineReport, EngineStatus, StepReport, Submission } from '../messages.ts';
import type { EngineThreadData } from './engine-thread.ts';
import { Watchdog } from './watchdog.ts';

interface EngineClientOptions {
  /** Starts the engine thread. */
  readonly spawn: () => Worker;
  /** Called after every step with events, and with the reports of the steps before it. */
  readonly onSteps?: (reports: readonly StepReport[], status: EngineStatus) => void;
  /**
   * A thread with work and without an answer for `afterMs` is replaced; on a GPU, the device counts as lost.
   * Default: never.
   */
  readonly stall?: { readonly afterMs: number; readonly now: () => number };
  /** Called when the thread has died; `reason` is one line for the log. */
  readonly onDeath?: (reason: string) => void;
  /** Called at each failed run; `message` is one line for the log. */
  readonly onFault?: (message: string) => void;
  /** Called when a request has failed because of a defect of the origin. */
  readonly onDefect?: (trace: BugTrace) => void;
  /** Called with one line for the log about something that costs speed only. */
  readonly onWarning?: (message: string) => void;
  /** Called after `onDeath` instead of a restart if the process can no longer use the device. */
  readonly onDeviceLost?: (reason: string) => void;
  /** Wait before the first restart; doubles with each restart in a row, up to 30 s. */
  readonly restartDelayMs?: number;
}

/** The engine could not be started. */
export class EngineStartError extends Error {
  override readonly name = 'EngineStartError';
  /** The model is the cause, so another start would also fail. */
  readonly permanent: boolean;
  /** This process can no longer use the device. */
  readonly deviceLost: boolean;

  constructor(message: string, permanent: boolean, deviceLost = false) {
    super(message);
    this.permanent = permanent;
    this.deviceLost = deviceLost;
  }
}

type EngineReady = Extract<EngineReport, { type: 'ready' }>;
type EngineEvents = Extract<EngineReport, { type: 'step' }>['events'][number][1];

/** Reply to a submission. Not admitted if the waiting queue is full or the engine is restarting. */
export type SubmissionReply =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly retryAfterMs: number };

/** @param ignoredKeywords of the request's constraint; given once, without an event, when it is compiled */
type EventListener = (events: EngineEvents, ignoredKeywords?: readonly string[]) => void;

const MIN_RESTART_MS = 100;
const MAX_RESTART_MS = 30_000;
const NOT_READY: SubmissionReply = { admitted: false, retryAfterMs: 2_000 };
const DOWN: EngineStatus = { running: 0, waiting: 0, healthy: false };
const IDLE: EngineStatus = { running: 0, waiting: 0, healthy: true };

/**
 * The engine for the rest of the origin. Keeps an engine thread running: if it dies or hangs, every open
 * request gets an error event, and a new thread is started.
 */
export class EngineClient {
  readonly #options: EngineClientOptions;
  readonly #thread: SupervisedChild<EngineCommand, EngineReport, SubmissionReply>;
  /** By request, also of those that the engine has not answered. */
  readonly #listeners = new Map<string, EventListener>();
  readonly #started = Promise.withResolvers<EngineReady>();
  #watchdog: Watchdog | null = null;
  #everReady = false;
  #status: EngineStatus = DOWN;
  /** Why the thread ends, as far as it or the watchdog has said. */
  #failure: EngineStartError | null = null;
  #lastFault: string | null = null;

  constructor(options: EngineClientOptions) {
    this.#options = options;
    this.#thread = new SupervisedChild({
      spawn: () => {
        const worker = options.spawn();
        return { ...threadLife(worker), end: () => worker.postMessage({ type: 'stop' }) };
      },
      onReport: (report) => this.#receive(report),
      deathError: () => new Error('The engine stopped unexpectedly.'),
      onLost: ({ message }) => this.#failOpen(message),
      onDeath: (death) => this.#died(death),
      graceMs: options.stall?.afterMs,
    });
  }

  /**
   * Starts the thread and waits until the model is open.
   * @throws EngineStartError with a message of one line
   */
  async start(): Promise<EngineReady> {
    this.#thread.start();
    return await this.#started.promise;
  }

  /** The status after the last step. Not healthy while no thread can take requests. */
  get status(): EngineStatus {
    return this.#status;
  }

  /** Why the last failed run failed, or why the thread died; null if neither has happened. */
  get lastFault(): string | null {
    return this.#lastFault;
  }

  /**
   * Resolves when the engine has admitted or refused the request. `onEvents` is called only after that,
   * without an event when the request's constraint has been compiled. Unless the request is aborted, its last
   * event is `done` or `error`.
   * @throws Error if a request with this id is open; ids must be unique
   */
  submit(submission: Submission, onEvents: EventListener): Promise<SubmissionReply> {
    const { requestId } = submission;
    if (this.#listeners.has(requestId))
      throw new Error(`request id ${JSON.stringify(requestId)} is in use; ids can be used once`);
    if (this.#thread.state !== 'ready') return Promise.resolve(NOT_READY);
    this.#listeners.set(requestId, onEvents);
    return this.#thread.request(requestId, { type: 'submit', submission }).catch(() => NOT_READY);
  }

  /** Aborts a request; it sends no more events. Does nothing if it has ended. */
  abort(requestId: string): void {
    if (!this.#listeners.delete(requestId)) return;
    this.#thread.settle(requestId, { admitted: true });
    this.#thread.send({ type: 'abort', requestId });
  }

  /** Stops the thread. Open requests get an error event. */
  async stop(): Promise<void> {
    await this.#thread.close(new Error('The engine was stopped.'));
  }

  /**
   * Watches a thread. If it hangs, fails its requests and ends it; its exit starts the next one. A thread
   * that hangs in native code ends only when that code returns, and until then the engine stays unhealthy:
   * two threads may not share the device.
   */
  #watch({ afterMs, now }: NonNullable<EngineClientOptions['stall']>, onGpu: boolean): Watchdog {
    const watchdog = new Watchdog({
      stallMs: afterMs,
      now,
      hasWork: () => this.#listeners.size > 0,
      ping: () => this.#thread.send({ type: 'ping' }),
      onStall: () => {
        const reason = `the engine thread did not answer for ${afterMs / 1000} s`;
        // Its memory on a GPU would stay taken until the process ends.
        this.#failure = new EngineStartError(reason, false, onGpu);
        this.#thread.kill(new Error('The engine stopped responding.'));
      },
    });
    watchdog.start();
    return watchdog;
  }

  #receive(report: EngineReport): void {
    const { stall, onFault, onDefect, onWarning, onSteps } = this.#options;
    switch (report.type) {
      case 'ready':
        this.#thread.noteReady();
        this.#status = IDLE;
        this.#everReady = true;
        this.#started.resolve(report);
        if (stall !== undefined) this.#watchdog = this.#watch(stall, report.onGpu);
        return;
      case 'failed':
        this.#failure = new EngineStartError(report.message, report.permanent, report.deviceLost);
        return;
      case 'alive':
        this.#watchdog?.alive();
        return;
      case 'admitted':
        this.#thread.settle(report.requestId, { admitted: true });
        return;
      case 'refused': {
        const { requestId, retryAfterMs } = report;
        this.#listeners.delete(requestId);
        this.#thread.settle(requestId, { admitted: false, retryAfterMs });
        return;
      }
      case 'compiled':
        this.#listeners.get(report.requestId)?.([], report.ignoredKeywords);
        return;
      case 'fault':
        this.#lastFault = report.message;
        onFault?.(report.message);
        return;
      case 'defect':
        onDefect?.(report.trace);
        return;
      case 'warning':
        onWarning?.(report.message);
        return;
      case 'step':
        this.#thread.noteProgress();
        this.#status = report.status;
        for (const [requestId, events] of report.events) this.#deliver(requestId, events);
        onSteps?.(report.reports, report.status);
    }
  }

  #deliver(requestId: string, events: EngineEvents): void {
    const listener = this.#listeners.get(requestId);
    const last = events.at(-1)?.type;
    if (last === 'done' || last === 'error') this.#listeners.delete(requestId);
    listener?.(events);
  }

  /** Returns the delay of the restart; null = none. */
  #died({ error, deaths }: ChildDeath): number | null {
    const { onDeath, onDeviceLost, restartDelayMs = MIN_RESTART_MS } = this.#options;
    const reason = error === null ? 'the engine thread exited' : `${error.name}: ${error.message}`;
    const failure = this.#failure ?? new EngineStartError(reason, false);
    this.#failure = null;
    if (!this.#everReady) {
      this.#started.reject(failure);
      return null;
    }
    this.#lastFault = failure.message;
    onDeath?.(failure.message);
    if (!failure.deviceLost) return backOff(deaths, restartDelayMs, MAX_RESTART_MS);
    onDeviceLost?.(failure.message);
    return null;
  }

  /** Ends all requests with an error event, except those that wait for their admission: they are refused. */
  #failOpen(message: string): void {
    this.#watchdog?.stop();
    this.#status = DOWN;
    const open = [...this.#listeners].filter(([requestId]) => !this.#thread.awaits(requestId));
    this.#listeners.clear();
    for (const [, onEvents] of open)
      onEvents([{ type: 'error', code: 'upstream_error', message, param: null, retryable: true }]);
  }
}

/** Starts the real engine thread. */
export function spawnEngineThread(data: EngineThreadData): Worker {
  const options = { workerData: data, resourceLimits: THREAD_MEMORY };
  const worker = new Worker(new URL('./engine-thread.ts', import.meta.url), options);
  const { threadId } = worker;
  worker.on('exit', () => freeAfterThread(data.model.engineLocks, threadId));
  return worker;
}
