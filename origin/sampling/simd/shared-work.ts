import type { BlockReductions } from './block-reductions.ts';
import { ReductionJobs } from './reduction-jobs.ts';
import { RowReducer } from './row-reducer.ts';
import { Instance, type WasmMemory } from './webassembly.ts';

/** What a thread needs to reduce rows of another one's. */
export interface SharedWork {
  readonly module: object;
  readonly memory: WasmMemory;
  /** A list of ReductionJobs. */
  readonly jobs: SharedArrayBuffer;
}

/** Threads beside the calling one. */
export interface Helpers {
  readonly count: number;
  /** Starts a thread that runs `reduceForever` and ends with the calling one. */
  start(work: SharedWork): void;
  /** The same memory as an ordinary buffer, which keeps it alive. V8 copies from shared buffers four times as slowly. */
  ordinary(memory: SharedArrayBuffer): ArrayBuffer;
}

/** Takes part in every round. */
export function reduceForever({ module, memory, jobs: list }: SharedWork): never {
  const { exports } = new Instance(module, { memory: { of: memory } });
  const jobs = new ReductionJobs(list);
  // The module is the kernel's, so that its exports are known.
  const reducer = new RowReducer(exports as BlockReductions, jobs, memory.buffer);
  for (let round = 0; ; ) {
    round = jobs.awaitRound(round);
    reducer.workOff();
  }
}
