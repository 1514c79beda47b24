import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '@continuo/origin/config/environment.ts';
import {
  type ChildExit,
  type ChildLife,
  processLife,
  SupervisedChild,
} from '@continuo/origin/process/supervised-child.ts';
import { errorCode } from '@continuo/shared/error-details.ts';
import { backOff } from '@continuo/shared/retry.ts';
import type { OutputLog } from './output-log.ts';

export interface Command {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  /** All variables of the process. */
  readonly env: Environment;
  /** Receives all output of the process. */
  readonly log: OutputLog;
}

interface CommandOptions {
  /** Resolves once the child works. If it dies before that, its start has failed. Default: never. */
  readonly untilReady?: (over: AbortSignal) => Promise<void>;
  readonly onRestart?: (exit: ChildExit) => void;
  /** True = a child that was ready once is also tried again if it was not ready since. Default: false. */
  readonly persists?: boolean;
  /** Wait before the second restart in a row; doubles with each further one, up to 30 s. */
  readonly restartMs?: number;
  /** Called when the child has died and is given up. */
  readonly onEnd: (exit: ChildExit) => void;
  /** Time to end after SIGTERM, until SIGKILL. */
  readonly graceMs: number;
}

const RESTART_MS = 1000;
const MAX_RESTART_MS = 30_000;
/** A child that was ready for so long is restarted at once. */
const STEADY_MS = 60_000;

/**
 * Starts a command. A child that dies after it was ready is restarted: at once if it had worked for a minute,
 * and after a growing wait if it dies again. A child that was never ready is given up, because the next start
 * would fail for the same reason, such as a model that does not fit.
 */
export function startCommand(
  command: Command,
  { untilReady, onRestart, persists = false, restartMs = RESTART_MS, onEnd, graceMs }: CommandOptions,
): SupervisedChild<never, never> {
  let hasWorked = false;
  const noteWork = async (over: AbortSignal, ready: Promise<void>) => {
    await ready;
    over.throwIfAborted();
    child.noteReady();
    await sleep(STEADY_MS, undefined, { signal: over, ref: false });
    child.noteProgress();
  };
  const child = new SupervisedChild<never, never>({
    spawn: () => processGroup(command),
    onStart: (over) => {
      if (untilReady) noteWork(over, untilReady(over)).catch(() => undefined);
    },
    onDeath: ({ wasReady, deaths, ...exit }) => {
      hasWorked ||= wasReady;
      if (!wasReady && !(hasWorked && persists)) {
        onEnd(exit);
        return null;
      }
      if (wasReady) onRestart?.(exit);
      return deaths === 1 ? 0 : backOff(deaths - 1, restartMs, MAX_RESTART_MS);
    },
    graceMs,
  });
  child.start();
  return child;
}

/**
 * Runs a child and its descendants as one process group. One signal reaches all of them; the terminal's
 * Ctrl-C reaches only the launcher.
 */
function processGroup({ file, args, env, log }: Command): ChildLife<never, never> {
  const child = spawn(file, args, {
    detached: true,
    env,
    // Its stdin stays open, so that the child notices when the launcher is gone. Node ends a process that
    // cannot write to a file, as on a full disk, so its output goes through the launcher.
    stdio: 'pipe',
  });
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => log.append(text));
  const kill = () => signalGroup(child.pid, 'SIGKILL');
  return {
    ...processLife<never, never>(child),
    end: () => signalGroup(child.pid, 'SIGTERM'),
    kill,
    listen(_, onExit) {
      child.once('error', (error) => onExit({ code: null, signal: null, error }));
      child.once('exit', (code, signal) => {
        // Descendants may have ignored the first signal, and they hold the output.
        kill();
        child.once('close', () => onExit({ code, signal, error: null }));
      });
    },
  };
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}
