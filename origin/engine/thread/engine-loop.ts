import { setImmediate } from 'node:timers/promises';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { TRIM_INTERVAL_MS } from '../kv/slot-trimmer.ts';
import type { EngineCommand, EngineReport } from '../messages.ts';
import type { Engine } from '../runs/engine.ts';
import type { EngineHooks } from '../runs/engine-options.ts';

/**
 * Runs an engine with the commands from a port until `stop` arrives. Drains the port between two steps,
 * because the event loop does not turn during a synchronous decode. Waits for a command only if the engine is
 * idle.
 */
export async function serveEngine(port: MessagePort, create: (hooks: EngineHooks) => Engine): Promise<void> {
  let stopped = false;
  let pinged = false;
  let wake = (): void => {};
  const engine = create({ report: (report) => port.postMessage(report), onWork: () => wake() });
  const handle = (command: EngineCommand): void => {
    if (command.type === 'submit') engine.submit(command.submission);
    else if (command.type === 'abort') engine.abort(command.requestId);
    else if (command.type === 'ping') pinged = true;
    else stopped = true;
    wake();
  };
  port.on('message', handle);
  try {
    for (;;) {
      for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
        handle(next.message);
      if (stopped) return;
      if (pinged) port.postMessage({ type: 'alive' } satisfies EngineReport);
      pinged = false;
      if (engine.idle) {
        engine.settle();
        const trimsAgain = engine.trim();
        let timer: NodeJS.Timeout | undefined;
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (trimsAgain) timer = setTimeout(resolve, TRIM_INTERVAL_MS);
          // Then the status reports what was written.
          void engine.writing?.then(resolve);
        });
        clearTimeout(timer);
      } else {
        await engine.step();
        if (engine.awaitsPreparation) await setImmediate();
      }
    }
  } finally {
    port.off('message', handle);
  }
}
