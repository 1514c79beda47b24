import { TRIM_INTERVAL_MS } from '../kv/slot-trimmer.ts';
import type { Engine } from './engine.ts';

/** What a loop needs of its thread. */
interface LoopThread {
  /** Handles the commands that have arrived. Returns false to end the loop. */
  receive(): boolean;
  /** Lets the event loop turn between two steps, if it must. */
  turn(): Promise<void>;
}

/** Runs an engine step by step, and sleeps only while it is idle. */
export class EngineLoop {
  #wake = (): void => {};

  /** Ends the sleep: there is a command or work. */
  readonly wake = (): void => this.#wake();

  /** @throws EngineFailure */
  async run(engine: Engine, thread: LoopThread): Promise<void> {
    while (thread.receive()) {
      if (engine.idle) {
        await this.#sleep(engine);
        continue;
      }
      await engine.step();
      await thread.turn();
    }
  }

  async #sleep(engine: Engine): Promise<void> {
    engine.settle();
    const trimsAgain = engine.trim();
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (trimsAgain) timer = setTimeout(resolve, TRIM_INTERVAL_MS);
      // Then the status reports what was written.
      void engine.writing?.then(resolve);
    });
    clearTimeout(timer);
  }
}
