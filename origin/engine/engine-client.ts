import { Worker } from 'node:worker_threads';
import { freeAfterThread } from '../process/thread-lock.ts';
import { THREAD_MEMORY } from '../process/thread-memory.ts';
import type { EngineThreadData } from './engine-thread.ts';
import type { EngineCommand, EngineReport, EngineStatus, StepReport, Submission } from './messages.ts';
import { Watchdog } from './watchdog.ts';

/** The part of a worker_threads Worker that the client uses. */
export interface EngineWorker {
  postMessage(command: EngineCommand): void;
  on(event: 'message', listener: (report: EngineReport) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'exit', listener: (code: number) => void): unknown;
  terminate(): Promise<unknown>;
}

export interface EngineClientOptions {
  /** Starts the engine thread. */
  readonly spawn: () => EngineWorker;
  /** Called after every step with events, and with the reports of the steps before it. */
  readonly onSteps?: (reports: readonly StepReport[], status: EngineStatus) => void;
  /** A thread with work and without an answer for `afterMs` is replaced. Default: never. */
  readonly stall?: { readonly afterMs: number; readonly now: () => number };
  /** Called when the thread has died; `reason` is one line for the log. */
  readonly onDeath?: (reason: string) => void;
  /** Called at each failed run; `message` is one line for the log. */
  readonly onFault?: (message: string) => void;
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

export type EngineReady = Extract<EngineReport, { type: 'ready' }>;
type EngineEvents = Extract<EngineReport, { type: 'step' }>['events'][number][1];

/** Immediate answer to a submission. Not admitted if the waiting queue is full or the engine is restarting. */
export type SubmissionAnswer =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly retryAfterMs: number };

/** @param ignoredKeywords of the request's constraint; given once, without an event, when it has been compiled */
type EventListener = (events: EngineEvents, ignoredKeywords?: readonly string[]) => void;

interface OpenSubmission {
  readonly onEvents: EventListener;
  /** Null once the engine has answered the submission. */
  answer: ((answer: SubmissionAnswer) => void) | null;
}

const MIN_RESTART_MS = 100;
const MAX_RESTART_MS = 30_000;
/** Default time for a thread to stop before it is ended. */
const MAX_STOP_MS = 30_000;
const LOADING_RETRY_MS = 2_000;
const DOWN: EngineStatus = { running: 0, waiting: 0, healthy: false };
const IDLE: EngineStatus = { running: 0, waiting: 0, healthy: true };

/**
 * The engine for the rest of the origin. Keeps an engine thread running: if it dies or hangs, every open request gets an
 * error event, and a new thread is started.
 */
export class EngineClient {
  readonly #options: EngineClientOptions;
  readonly #open = new Map<string, OpenSubmission>();
  #worker: EngineWorker | null = null;
  readonly #ready = Promise.withResolvers<EngineReady>();
  #state: 'starting' | 'ready' | 'stopped' = 'starting';
  #everReady = false;
  #status: EngineStatus = DOWN;
  /** Deaths since the last step. */
  #deaths = 0;
  #restart: NodeJS.Timeout | null = null;
  #lastFault: string | null = null;

  constructor(options: EngineClientOptions) {
    this.#options = options;
  }

  /**
   * Starts the thread and waits until the model is open.
   * @throws EngineStartError with a message of one line
   */
  async start(): Promise<EngineReady> {
    this.#spawn();
    return await this.#ready.promise;
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
   * Resolves when the engine has admitted or refused the request. `onEvents` is called only after that, without an event
   * when the request's constraint has been compiled. Unless the request is aborted, its last event is `done` or `error`.
   * @throws Error if a request with this id is open; ids must be unique
   */
  submit(submission: Submission, onEvents: EventListener): Promise<SubmissionAnswer> {
    const { requestId } = submission;
    if (this.#open.has(requestId))
      throw new Error(`request id ${JSON.stringify(requestId)} is in use; ids can be used once`);
    if (this.#state !== 'ready' || this.#worker === null) {
      return Promise.resolve({ admitted: false, retryAfterMs: LOADING_RETRY_MS });
    }
    const { promise, resolve } = Promise.withResolvers<SubmissionAnswer>();
    this.#open.set(requestId, { onEvents, answer: resolve });
    this.#worker.postMessage({ type: 'submit', submission });
    return promise;
  }

  /** Aborts a request; it sends no more events. Does nothing if it has ended. */
  abort(requestId: string): void {
    const open = this.#open.get(requestId);
    if (open === undefined) return;
    this.#open.delete(requestId);
    open.answer?.({ admitted: true });
    this.#worker?.postMessage({ type: 'abort', requestId });
  }

  /** Stops the thread. Open requests get an error event. */
  async stop(): Promise<void> {
    const worker = this.#worker;
    this.#state = 'stopped';
    this.#worker = null;
    this.#status = DOWN;
    if (this.#restart !== null) clearTimeout(this.#restart);
    this.#failOpen('The engine was stopped.');
    if (worker === null) return;
    const exited = new Promise<void>((resolve) => worker.on('exit', () => resolve()));
    worker.postMessage({ type: 'stop' });
    const hung = setTimeout(() => void worker.terminate(), this.#options.stall?.afterMs ?? MAX_STOP_MS);
    await exited;
    clearTimeout(hung);
  }

  #spawn(): void {
    const worker = this.#options.spawn();
    this.#worker = worker;
    let reason = 'the engine thread exited';
    let permanent = false;
    let deviceLost = false;
    let stalled = false;
    const watchdog = this.#watch(worker, (stallReason) => {
      stalled = true;
      reason = stallReason;
    });
    worker.on('message', (report) => {
      if (this.#worker !== worker || stalled) return;
      if (report.type === 'ready') watchdog?.start();
      if (report.type === 'alive') watchdog?.alive();
      else if (report.type === 'failed') ({ message: reason, permanent, deviceLost } = report);
      else this.#receive(report);
    });
    worker.on('error', (error) => {
      reason = `${error.name}: ${error.message}`;
    });
    worker.on('exit', () => {
      watchdog?.stop();
      if (this.#worker === worker) this.#died(new EngineStartError(reason, permanent, deviceLost));
    });
  }

  /**
   * Watches a thread. If it hangs, fails its requests and ends it; its exit starts the next one. A thread that hangs in
   * native code ends only when that code returns, and until then the engine stays unhealthy: two threads may not share
   * the device.
   */
  #watch(worker: EngineWorker, onStall: (reason: string) => void): Watchdog | null {
    const { stall } = this.#options;
    if (stall === undefined) return null;
    return new Watchdog({
      stallMs: stall.afterMs,
      now: stall.now,
      hasWork: () => this.#open.size > 0,
      ping: () => worker.postMessage({ type: 'ping' }),
      onStall: () => {
        onStall(`the engine thread did not answer for ${stall.afterMs / 1000} s`);
        if (this.#worker === worker) this.#fail('The engine stopped responding.');
        void worker.terminate();
      },
    });
  }

  /** Refuses new requests and fails the open ones, until the next thread is ready. */
  #fail(message: string): void {
    this.#state = 'starting';
    this.#status = DOWN;
    this.#failOpen(message);
  }

  #receive(report: Exclude<EngineReport, { type: 'failed' | 'alive' }>): void {
    switch (report.type) {
      case 'ready':
        this.#state = 'ready';
        this.#status = IDLE;
        this.#everReady = true;
        this.#ready.resolve(report);
        return;
      case 'admitted':
        this.#answer(report.requestId, { admitted: true });
        return;
      case 'refused': {
        const { requestId, retryAfterMs } = report;
        this.#answer(requestId, { admitted: false, retryAfterMs });
        this.#open.delete(requestId);
        return;
      }
      case 'compiled':
        this.#open.get(report.requestId)?.onEvents([], report.ignoredKeywords);
        return;
      case 'fault':
        this.#lastFault = report.message;
        this.#options.onFault?.(report.message);
        return;
      case 'warning':
        this.#options.onWarning?.(report.message);
        return;
      case 'step':
        this.#deaths = 0;
        this.#status = report.status;
        for (const [requestId, events] of report.events) this.#deliver(requestId, events);
        this.#options.onSteps?.(report.reports, report.status);
    }
  }

  #answer(requestId: string, answer: SubmissionAnswer): void {
    const open = this.#open.get(requestId);
    open?.answer?.(answer);
    if (open !== undefined) open.answer = null;
  }

  #deliver(requestId: string, events: EngineEvents): void {
    const open = this.#open.get(requestId);
    const last = events.at(-1)?.type;
    if (last === 'done' || last === 'error') this.#open.delete(requestId);
    open?.onEvents(events);
  }

  #died(error: EngineStartError): void {
    this.#worker = null;
    this.#fail('The engine stopped unexpectedly.');
    if (!this.#everReady) {
      this.#ready.reject(error);
      return;
    }
    this.#lastFault = error.message;
    this.#options.onDeath?.(error.message);
    if (error.deviceLost) {
      this.#options.onDeviceLost?.(error.message);
      return;
    }
    const first = this.#options.restartDelayMs ?? MIN_RESTART_MS;
    const delay = Math.min(MAX_RESTART_MS, first * 2 ** this.#deaths);
    this.#deaths++;
    this.#restart = setTimeout(() => this.#spawn(), delay);
  }

  /** Refuses the requests that have not been answered, and ends all others with an error event. */
  #failOpen(message: string): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { onEvents, answer } of open) {
      if (answer !== null) answer({ admitted: false, retryAfterMs: LOADING_RETRY_MS });
      else onEvents([{ type: 'error', code: 'upstream_error', message, param: null, retryable: true }]);
    }
  }
}

/** Starts the real engine thread. */
export function spawnEngineThread(data: EngineThreadData): EngineWorker {
  const options = { workerData: data, resourceLimits: THREAD_MEMORY };
  const worker = new Worker(new URL('./engine-thread.ts', import.meta.url), options);
  const { threadId } = worker;
  worker.on('exit', () => freeAfterThread(data.model.runLock, threadId));
  return worker;
}
