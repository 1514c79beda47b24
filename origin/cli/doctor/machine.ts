import { requireKnownVariables } from '@continuo/origin/config/config.ts';
import type { Environment } from '@continuo/origin/config/environment.ts';
import { requireDirectory } from '@continuo/origin/config/writable-directory.ts';
import { SIGNATURE_WINDOW_MS } from '@continuo/origin/http/authentication.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { portFault } from '../start/port.ts';
import { type Finding, fail, fetchReply, isHealth, ok, warn } from './finding.ts';

/** Checks of this machine. */

/** @param node version and whether it runs TypeScript */
export function checkNode({ version, typescript }: { version: string; typescript: boolean }): Finding {
  const advice = 'Install Node 24. In a checkout on linux-x64, npm ci brings it.';
  return typescript ? ok('Node', version) : fail('Node', `${version} cannot run TypeScript`, advice);
}

/** Checks the names of the CONTINUO_ variables. The other checks read their values. */
export function checkVariables(environment: Environment): Finding {
  const count = Object.keys(environment).filter((name) => name.startsWith('CONTINUO_')).length;
  try {
    requireKnownVariables(environment);
    return ok('Variables', count === 0 ? 'all defaults' : `${count} set`);
  } catch (error) {
    return fail('Variables', errorMessage(error), 'Correct it; docs/configuration.md lists all variables.');
  }
}

/** Checks that a port is free, or used by Continuo itself. */
export async function checkPort(variable: string, port: number, host: string): Promise<Finding> {
  const name = `Port ${port}`;
  const fault = await portFault(port, host);
  if (fault === null) return ok(name, 'free');
  if (fault !== 'EADDRINUSE') {
    return fail(name, `cannot be used on ${host} (${fault})`, `Set ${variable} to another port.`);
  }
  const reached = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  const url = `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}/health`;
  if (isHealth(await fetchReply(url))) return ok(name, 'Continuo is running here');
  return fail(name, 'another program uses it', `Set ${variable} to a free port, or stop that program.`);
}

/** Checks that `npm start` can write its keys, database and logs, in the directory that it would create. */
export function checkStateDirectory(directory: string): Finding {
  const name = 'State directory';
  try {
    requireDirectory(directory, 'CONTINUO_STATE_DIR');
    return ok(name, directory);
  } catch (error) {
    return fail(name, errorMessage(error), 'Set CONTINUO_STATE_DIR to a directory that you can write.');
  }
}

/** Clocks may differ by this much without a warning, in milliseconds. HTTP dates count seconds. */
const USUAL_SKEW_MS = 5000;

/** Compares the clock of the origin with this one. @param now Unix milliseconds */
export async function checkClock(originUrl: string, now: () => number): Promise<Finding> {
  const name = 'Clock';
  const sent = now();
  const reply = await fetchReply(`${originUrl}/health`);
  const middle = (sent + now()) / 2;
  if (reply === null || Number.isNaN(reply.date)) {
    return warn(
      name,
      `not checked: no origin answers at ${originUrl}`,
      'Start the origin, or name it with --origin.',
    );
  }
  const skew = Math.abs(reply.date - middle);
  const text = `the origin's clock differs by ${Math.round(skew / 1000)} s`;
  const advice = 'Run a time service (NTP) on both machines.';
  if (skew > SIGNATURE_WINDOW_MS) {
    return fail(name, `${text}; it refuses signatures from ${SIGNATURE_WINDOW_MS / 1000} s on`, advice);
  }
  return skew > USUAL_SKEW_MS ? warn(name, text, advice) : ok(name, text);
}
