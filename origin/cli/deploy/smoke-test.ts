import { CommandError } from '@continuo/origin/terminal/program.ts';

/** Asks a deployed Worker what shows that it runs, refuses strangers and reaches its database. */

const PATIENCE_MS = 60_000;
const PAUSE_MS = 2000;
const TIMEOUT_MS = 10_000;

export interface SmokeTest {
  /** Environment of the configuration; '' = its top level. */
  readonly env: string;
  readonly fetch: typeof fetch;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<unknown>;
}

/**
 * Repeats each probe until it has its status, because a new address takes some seconds to work everywhere.
 * @param adminKey null = unknown here
 * @returns what was asked
 * @throws CommandError with the last answer of the first probe that failed for a minute
 */
export async function smokeTest(url: string, adminKey: string | null, test: SmokeTest): Promise<string[]> {
  const json = { 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'default', prompt: 'Hi', max_tokens: 1 });
  const probes: [string, number, RequestInit][] = [
    ['/health', 200, {}],
    ['/v1/completions', 401, { method: 'POST', headers: json, body }],
  ];
  if (adminKey !== null)
    probes.push(['/admin/v1/plans', 200, { headers: { authorization: `Bearer ${adminKey}` } }]);
  const until = test.now() + PATIENCE_MS;
  for (const [path, wanted, init] of probes) {
    for (;;) {
      const request = { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) };
      const status = (await test.fetch(new URL(path, url), request).catch(() => null))?.status;
      if (status === wanted) break;
      if (test.now() > until) {
        throw new CommandError(
          `${url}${path} answers ${status ?? 'nothing'} instead of ${wanted}. Read the log with npx wrangler tail --env=${test.env}. ` +
            `To return to the last version: npx wrangler rollback --env=${test.env}.`,
        );
      }
      await test.sleep(PAUSE_MS);
    }
  }
  return probes.map(([path, status]) => `${path} ${status}`);
}
