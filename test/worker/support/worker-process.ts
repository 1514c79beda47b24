import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { clientOf, startWorker, type WorkerClient, type WorkerOptions } from './worker.ts';

/** The Worker in its own process, which can be killed with its workerd. Only the data on disk survives. */

interface Plan {
  readonly origin: { readonly url: string; readonly secret: string };
  readonly vars: Readonly<Record<string, string>>;
  readonly options: WorkerOptions;
}

export interface WorkerProcess extends WorkerClient {
  /** Kills the process and its workerd. */
  kill(): Promise<void>;
}

export async function spawnWorker(plan: Plan): Promise<WorkerProcess> {
  // Its own process group, so that workerd is killed at the same time.
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), [JSON.stringify(plan)], {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const gone = once(child, 'exit');
  const ended = gone.then(() => Promise.reject(new Error('The Worker did not start.')));
  const [url] = (await Promise.race([once(child, 'message'), ended])) as [string];
  ended.catch(() => {});
  return {
    ...clientOf(url),
    async kill() {
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL');
      await gone;
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { origin, vars, options } = JSON.parse(process.argv[2] ?? '') as Plan;
  const worker = await startWorker(origin, vars, options);
  process.send?.(worker.url);
  // The parent process has exited.
  process.on('disconnect', () => void worker.stop().then(() => process.exit()));
}
