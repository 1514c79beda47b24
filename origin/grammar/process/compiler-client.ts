import type { ChildProcess } from 'node:child_process';
import type { Program } from '../program/program.ts';
import {
  type CompileRequest,
  type CompileResponse,
  type PendingCompile,
  processDiedError,
  settlePending,
  shutdownError,
} from './compile-messages.ts';
import { startIsolatedProcess } from './isolated-process.ts';

/** The engine's client of the compile server. If the server dies, the next constraint starts a new one. */
export class CompilerClient {
  readonly #waiting = new Map<number, PendingCompile>();
  #server: ChildProcess | null;
  #nextId = 0;
  #closed = false;

  constructor() {
    this.#server = this.#start();
  }

  get pid(): number | undefined {
    return this.#server?.pid;
  }

  /**
   * @param wire a WireConstraint as JSON
   * @throws ApiError naming the error in the constraint; 503 if too many compilations wait
   */
  compile(wire: string, tenantId: string): Promise<Program> {
    if (this.#closed) return Promise.reject(shutdownError());
    this.#server ??= this.#start();
    const server = this.#server;
    if (server === null) return Promise.reject(processDiedError());
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      server.channel?.ref();
      server.send({ id, wire, tenantId } satisfies CompileRequest);
    });
  }

  /** Ends the server and its processes. Running and later compilations fail. */
  async close(): Promise<void> {
    this.#closed = true;
    const server = this.#server;
    this.#server = null;
    this.#fail(shutdownError());
    if (server === null) return;
    const exited = new Promise((resolve) => server.once('exit', resolve));
    server.ref();
    server.disconnect();
    await exited;
  }

  /** Returns null if the system cannot start another process. */
  #start(): ChildProcess | null {
    try {
      const server = startIsolatedProcess(new URL('./compile-server-entry.ts', import.meta.url));
      const end = (): void => {
        server.kill('SIGKILL');
        if (this.#server !== server) return;
        this.#server = null;
        this.#fail(processDiedError());
      };
      server.on('exit', end).on('error', end);
      server.on('message', (response: CompileResponse) => this.#take(response));
      if (server.pid === undefined) return null;
      // An idle server does not keep the parent process alive.
      server.unref();
      server.channel?.unref();
      return server;
    } catch {
      return null;
    }
  }

  #take({ id, outcome }: CompileResponse): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#server?.channel?.unref();
    if (waiting !== undefined) settlePending(waiting, outcome);
  }

  #fail(error: Error): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}
