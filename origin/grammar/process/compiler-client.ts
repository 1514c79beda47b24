import type { ChildProcess } from 'node:child_process';
import type { Program } from '../program/program.ts';
import {
  type CompileAnswer,
  type CompileRequest,
  closedError,
  diedError,
  settle,
  type Waiting,
} from './compile-messages.ts';
import { startBareProcess } from './isolated-process.ts';

/** The compile server as the engine sees it. A server that has died is started again for the next constraint. */
export class CompilerClient {
  readonly #waiting = new Map<number, Waiting>();
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
   * @throws ApiError naming the fault when it cannot be compiled, 503 when too much is waiting
   */
  compile(wire: string, tenantId: string): Promise<Program> {
    if (this.#closed) return Promise.reject(closedError());
    this.#server ??= this.#start();
    const server = this.#server;
    if (server === null) return Promise.reject(diedError());
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      server.channel?.ref();
      server.send({ id, wire, tenantId } satisfies CompileRequest);
    });
  }

  /** Ends the server and its processes; compilations under way and later ones fail. */
  async close(): Promise<void> {
    this.#closed = true;
    const server = this.#server;
    this.#server = null;
    this.#fail(closedError());
    if (server === null) return;
    const exited = new Promise((resolve) => server.once('exit', resolve));
    server.ref();
    server.disconnect();
    await exited;
  }

  /** Null where the system has no room for another process. */
  #start(): ChildProcess | null {
    try {
      const server = startBareProcess(new URL('./compile-server-entry.ts', import.meta.url));
      const end = (): void => {
        server.kill('SIGKILL');
        if (this.#server !== server) return;
        this.#server = null;
        this.#fail(diedError());
      };
      server.on('exit', end).on('error', end);
      server.on('message', (answer: CompileAnswer) => this.#take(answer));
      if (server.pid === undefined) return null;
      // An idle server does not keep the process alive.
      server.unref();
      server.channel?.unref();
      return server;
    } catch {
      return null;
    }
  }

  #take({ id, outcome }: CompileAnswer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#server?.channel?.unref();
    if (waiting !== undefined) settle(waiting, outcome);
  }

  #fail(error: Error): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}
