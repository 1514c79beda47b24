import { setImmediate } from 'node:timers/promises';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { EngineCommand, EngineReport } from '../messages.ts';
import type { Engine } from '../runs/engine.ts';
import { EngineLoop } from '../runs/engine-loop.ts';
import type { EngineHooks } from '../runs/engine-options.ts';

/**
 * Runs an engine with the commands from a port until `stop` arrives. Drains the port between two steps,
 * because the event loop does not turn during a synchronous decode.
 */
export async function serveEngine(port: MessagePort, create: (hooks: EngineHooks) => Engine): Promise<void> {
  let stopped = false;
  let pinged = false;
  const loop = new EngineLoop();
  const engine = create({ report: (report) => port.postMessage(report), onWork: loop.wake });
  const handle = (command: EngineCommand): void => {
    if (command.type === 'submit') engine.submit(command.submission);
    else if (command.type === 'abort') engine.abort(command.requestId);
    else if (command.type === 'ping') pinged = true;
    else stopped = true;
    loop.wake();
  };
  const receive = (): boolean => {
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) handle(next.message);
    if (pinged && !stopped) port.postMessage({ type: 'alive' } satisfies EngineReport);
    pinged = false;
    return !stopped;
  };
  const turn = async (): Promise<void> => {
    if (engine.awaitsPreparation) await setImmediate();
  };
  port.on('message', handle);
  try {
    await loop.run(engine, { receive, turn });
  } finally {
    port.off('message', handle);
  }
}
