import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';

/** One life of a child, a worker thread or a process: how its supervisor reaches it. */
export interface ChildLife<Command, Report> {
  readonly pid?: number | undefined;
  send(command: Command): void;
  /** Asks the child to end. */
  end(): void;
  /** Ends the child at once. */
  kill(): void;
  /** From now on, the child keeps this process alive. */
  ref(): void;
  unref(): void;
  listen(onReport: (report: Report) => void, onExit: (exit: ChildExit) => void): void;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What a thread threw, or why the child could not be started; null = it ended itself or was ended. */
  readonly error: Error | null;
}

/** The end of a life that was not closed. */
export interface ChildDeath extends ChildExit {
  readonly wasReady: boolean;
  /** Deaths since the last progress, this one included. */
  readonly deaths: number;
}

export interface ChildOptions<Command, Report> {
  /** Starts one life: a plain object. May throw. */
  readonly spawn: () => ChildLife<Command, Report>;
  /** Called when a life has been started. `over` is aborted when it has ended. */
  readonly onStart?: (over: AbortSignal) => void;
  readonly onReport?: (report: Report) => void;
  /** Returns what the open requests of a child that died fail with. */
  readonly deathError?: (exit: ChildExit) => Error;
  /** Called when the child takes no more requests, before the open ones fail with the same error. */
  readonly onLost?: (error: Error) => void;
  /** Returns the milliseconds until the next life; null = none, until `start` is called. Default: null. */
  readonly onDeath?: (death: ChildDeath) => number | null;
  /** True = an idle child does not keep this process alive. Default: false. */
  readonly background?: boolean;
  /** Time to end after `close`, until the child is killed. Default: 30 s. */
  readonly graceMs?: number | undefined;
}

interface Life<Command, Report> extends ChildLife<Command, Report> {
  readonly over: AbortController;
  wasReady: boolean;
  /** Neither killed nor closed. */
  serves: boolean;
  isClosed: boolean;
}

const GRACE_MS = 30_000;

/**
 * Keeps a child: starts it, resolves requests with its replies, fails the requests that a dead child leaves
 * open, and starts the next life. The owner knows what the messages mean, and when to restart.
 */
export class SupervisedChild<Command, Report, Reply = never> {
  readonly #options: ChildOptions<Command, Report>;
  readonly #requests = new Map<number | string, PromiseWithResolvers<Reply>>();
  #life: Life<Command, Report> | null = null;
  #restart: NodeJS.Timeout | undefined;
  #deaths = 0;

  constructor(options: ChildOptions<Command, Report>) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#life?.pid;
  }

  /** A child that is down takes no requests: it has not been started, has died, or is ending. */
  get state(): 'down' | 'starting' | 'ready' {
    if (!this.#life?.serves) return 'down';
    return this.#life.wasReady ? 'ready' : 'starting';
  }

  /** Starts the child unless it runs. Returns whether it takes requests. */
  start(): boolean {
    if (this.#life === null) this.#spawn();
    return this.state !== 'down';
  }

  /** To be called when the child has started to work. */
  noteReady(): void {
    if (this.#life !== null) this.#life.wasReady = true;
  }

  /** To be called when the child has done what it is for. The next death is then the first in a row. */
  noteProgress(): void {
    this.#deaths = 0;
  }

  send(command: Command): void {
    this.#life?.send(command);
  }

  /** Sends a request to a serving child. Resolves with what `settle` gets, and fails if the child is lost. */
  request(id: number | string, command: Command): Promise<Reply> {
    const request = Promise.withResolvers<Reply>();
    this.#requests.set(id, request);
    this.#life?.ref();
    this.send(command);
    return request.promise;
  }

  awaits(id: number | string): boolean {
    return this.#requests.has(id);
  }

  /** Resolves an open request. Does nothing if there is none with this id. */
  settle(id: number | string, reply: Reply): void {
    this.#requests.get(id)?.resolve(reply);
    this.#requests.delete(id);
    if (this.#options.background && this.#requests.size === 0) this.#life?.unref();
  }

  /** Fails the open requests and ends the child at once. Its death follows. */
  kill(error: Error): void {
    this.#lose(error);
    this.#life?.kill();
  }

  /** Fails the open requests and asks the child to end. Resolves when it has ended. */
  async close(error = new Error('The child was closed.')): Promise<void> {
    clearTimeout(this.#restart);
    this.#lose(error);
    const life = this.#life;
    if (life === null) return;
    life.isClosed = true;
    life.ref();
    life.end();
    const timer = setTimeout(() => life.kill(), this.#options.graceMs ?? GRACE_MS);
    await once(life.over.signal, 'abort');
    clearTimeout(timer);
  }

  #spawn(): void {
    clearTimeout(this.#restart);
    const { spawn, onStart, onReport, background } = this.#options;
    let life: Life<Command, Report>;
    try {
      life = { ...spawn(), over: new AbortController(), wasReady: false, serves: true, isClosed: false };
    } catch (error) {
      this.#die({ code: null, signal: null, error: error as Error }, false);
      return;
    }
    this.#life = life;
    life.listen(
      (report) => life.serves && onReport?.(report),
      (exit) => this.#exited(life, exit),
    );
    if (background) life.unref();
    onStart?.(life.over.signal);
  }

  #exited(life: Life<Command, Report>, exit: ChildExit): void {
    if (this.#life !== life) return;
    if (life.serves) this.#lose(this.#options.deathError?.(exit) ?? new Error('The child died.'));
    this.#life = null;
    life.over.abort();
    if (!life.isClosed) this.#die(exit, life.wasReady);
  }

  #die(exit: ChildExit, wasReady: boolean): void {
    const { onDeath, background } = this.#options;
    this.#deaths++;
    const delay = onDeath?.({ ...exit, wasReady, deaths: this.#deaths }) ?? null;
    if (delay === null) return;
    this.#restart = setTimeout(() => this.#spawn(), delay);
    if (background) this.#restart.unref();
  }

  #lose(error: Error): void {
    if (this.#life !== null) this.#life.serves = false;
    const open = [...this.#requests.values()];
    this.#options.onLost?.(error);
    this.#requests.clear();
    for (const { reject } of open) reject(error);
  }
}

/**
 * Limits of a long-lived thread's JavaScript heap. V8 lets the young generation grow to 100 MiB of garbage
 * per thread and keeps it; the engine and tokenizer threads have 10 to 25 MiB of live objects each.
 */
export const THREAD_MEMORY = { maxYoungGenerationSizeMb: 24 };

export function threadLife<Command, Report>(thread: Worker): ChildLife<Command, Report> {
  const terminate = () => void thread.terminate();
  return {
    send: (command) => thread.postMessage(command),
    end: terminate,
    kill: terminate,
    ref: () => thread.ref(),
    unref: () => thread.unref(),
    listen(onReport, onExit) {
      let error: Error | null = null;
      thread.on('message', onReport);
      thread.on('error', (thrown) => {
        error = thrown;
      });
      thread.on('exit', (code) => onExit({ code, signal: null, error }));
    },
  };
}

/** @param child forked, because messages and the request to end need its IPC channel */
export function processLife<Command extends object, Report>(child: ChildProcess): ChildLife<Command, Report> {
  const kill = () => void child.kill('SIGKILL');
  return {
    pid: child.pid,
    send: (command) => void child.send(command),
    end: () => child.disconnect(),
    kill,
    ref() {
      child.ref();
      child.channel?.ref();
    },
    unref() {
      child.unref();
      child.channel?.unref();
    },
    listen(onReport, onExit) {
      child.on('message', onReport);
      child.on('exit', (code, signal) => onExit({ code, signal, error: null }));
      child.on('error', (error) => {
        kill();
        // A process that was never started has no exit event.
        if (child.pid === undefined) onExit({ code: null, signal: null, error });
      });
    },
  };
}
