import { setImmediate } from 'node:timers/promises';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { Engine, EngineOptions } from './engine.ts';
import type { EngineCommand } from './messages.ts';

/**
 * Drives an engine from a port until `stop` comes. Between two steps the port is drained by hand, because a
 * synchronous decode never lets the event loop turn; it is waited upon only when there is nothing to do.
 */
export async function serveEngine(
  port: MessagePort,
  create: (hooks: Pick<EngineOptions, 'report' | 'onWork'>) => Engine,
): Promise<void> {
  let stopped = false;
  let wake = (): void => {};
  const engine = create({ report: (report) => port.postMessage(report), onWork: () => wake() });
  const obey = (command: EngineCommand): void => {
    if (command.type === 'submit') engine.submit(command.submission);
    else if (command.type === 'abort') engine.abort(command.requestId);
    else stopped = true;
    wake();
  };
  port.on('message', obey);
  try {
    for (;;) {
      for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) obey(next.message);
      if (stopped) return;
      if (engine.idle) {
        engine.settle();
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else {
        await engine.step();
        if (engine.awaitsPreparation) await setImmediate();
      }
    }
  } finally {
    port.off('message', obey);
  }
}
