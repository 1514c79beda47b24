import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import type { System } from '../../support/system.ts';
import { newTenant, post } from '../chaos/scenario.ts';
import { PROMPT } from './bodies.ts';
import { sendAndCheck, type Target } from './check-answer.ts';
import { requests } from './requests.ts';

/** Requests at the same time. */
const AT_ONCE = 16;
/**
 * Concurrent requests of the tenant, so that a leaked place is noticed at the end. Those who leave free
 * theirs later.
 */
const PLACES = 2 * AT_ONCE;

export interface FuzzReport {
  /** Answers by status; 0 = the client left, or sent no whole request. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Descriptions of violated invariants. */
  readonly violations: readonly string[];
}

export interface FuzzOptions {
  readonly count: number;
  readonly seed: number;
  /** Called after each batch with the number of requests so far. */
  readonly onProgress?: (sent: number) => void;
}

/** Sends random and mutated requests to a running system; checks answers and the system. */
export async function fuzz(system: System, { count, seed, onProgress }: FuzzOptions): Promise<FuzzReport> {
  const target = {
    url: system.url,
    apiKey: await newTenant(system, 'fuzz', { concurrent_requests: PLACES }),
  };
  const origin = system.originPid();
  const statuses: Record<string, number> = {};
  const violations: string[] = [];
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    const batch = fc.sample(requests, { numRuns: Math.min(AT_ONCE, count - sent), seed: seed + sent });
    await Promise.all(
      batch.map(async (request, index) => {
        try {
          const status = await sendAndCheck(request, target);
          statuses[status] = (statuses[status] ?? 0) + 1;
        } catch (thrown) {
          const shown = fc.stringify(request).slice(0, 2_000);
          violations.push(`request ${sent + index}: ${String(thrown).slice(0, 500)}\n  ${shown}`);
        }
      }),
    );
    onProgress?.(sent + batch.length);
  }
  return { statuses, violations: [...(await violationsAtTheEnd(system, target, origin)), ...violations] };
}

async function violationsAtTheEnd(
  system: System,
  { url, apiKey }: Target,
  originPid: number,
): Promise<string[]> {
  const body = { model: 'default', prompt: 'Hi', max_tokens: 4 };
  const violations: string[] = [];
  if (!(await untilIdle(system))) violations.push('the origin still has running or waiting sequences');
  const all = Array.from({ length: PLACES }, () => post(`${url}/v1/completions`, apiKey, body, 60_000));
  const answers = (await Promise.all(all)).map(({ status }) => status);
  if (answers.some((status) => status !== 200))
    violations.push(`${PLACES} requests at once: ${answers.join(' ')}`);
  if (system.originPid() !== originPid) violations.push('the origin was restarted');
  for (const name of ['origin', 'worker'] as const) {
    const log = readFileSync(`${system.stateDirectory}/${name}.log`, 'utf8');
    const bad = log.split('\n').filter((line) => /"event":"bug"|"level":"(error|fatal)"|^stack: /.test(line));
    if (bad.length > 0) violations.push(`${name}.log has ${bad.length} errors: ${bad[0]!.slice(0, 500)}`);
    if (log.includes(PROMPT)) violations.push(`${name}.log contains a prompt`);
  }
  return violations;
}

/** Returns whether the origin has no more work within 30 s. */
async function untilIdle({ metricsUrl }: System): Promise<boolean> {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    const health = (await (await fetch(`${metricsUrl}/health`)).json()) as {
      running: number;
      waiting: number;
    };
    if (health.running + health.waiting === 0) return true;
    await sleep(100);
  }
  return false;
}
