import type { Program } from '@continuo/grammar/program/program.ts';
import { processLife, SupervisedChild } from '../process/supervised-child.ts';
import {
  type CompileOutcome,
  type CompileRequest,
  type CompileResponse,
  processDiedError,
  programOf,
  shutdownError,
} from './compile-jobs.ts';
import { startIsolatedProcess } from './isolated-process.ts';

/** The engine's client of the compile server. If the server dies, the next constraint starts a new one. */
export class CompilerClient {
  readonly #server = new SupervisedChild<CompileRequest, CompileResponse, CompileOutcome>({
    spawn: () => processLife(startIsolatedProcess(new URL('./compile-server-entry.ts', import.meta.url))),
    onReport: ({ id, outcome }) => this.#server.settle(id, outcome),
    deathError: processDiedError,
    background: true,
  });
  #nextId = 0;
  #closed = false;

  constructor() {
    this.#server.start();
  }

  get pid(): number | undefined {
    return this.#server.pid;
  }

  /**
   * @param wire a WireConstraint as JSON
   * @throws ApiError naming the error in the constraint; 503 if too many compilations wait
   */
  async compile(wire: string, tenantId: string): Promise<Program> {
    if (this.#closed) throw shutdownError();
    if (!this.#server.start()) throw processDiedError();
    const id = this.#nextId++;
    return programOf(await this.#server.request(id, { id, wire, tenantId }));
  }

  /** Ends the server and its processes. Running and later compilations fail. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#server.close(shutdownError());
  }
}
