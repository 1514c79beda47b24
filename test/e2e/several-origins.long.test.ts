import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePort, startSystem } from '../support/system.ts';

/** Returns the first of so many free ports that follow one another. */
async function portsInRow(count: number): Promise<number> {
  for (;;) {
    const first = await freePort();
    let next = first + 1;
    while (next < first + count && (await freePort()) === next) next++;
    if (next === first + count) return first;
  }
}

test('an origin for each device serves one model, and a lost one leaves its requests to the others', async () => {
  const metricsPort = await portsInRow(3);
  const system = await startSystem({
    CONTINUO_PROVIDER: 'cpu',
    CONTINUO_DEVICES: '0,1',
    CONTINUO_SLOTS: '2',
    CONTINUO_PREFIX_CACHE_MIB: '16',
    CONTINUO_ORIGIN_PORT: String(await portsInRow(2)),
    CONTINUO_METRICS_PORT: String(metricsPort),
  });
  onTestFinished(async () => void (await system.stop()));
  const complete = async (prompt: string) => {
    const fields = { model: 'default', prompt, max_tokens: 4, seed: 1 };
    const response = await system.request('/v1/completions', fields);
    const body = (await response.json()) as { choices: { text: string }[]; system_fingerprint: string };
    return { status: response.status, text: body.choices?.[0]?.text, fingerprint: body.system_fingerprint };
  };
  const together = (path: string) => fetch(`http://127.0.0.1:${metricsPort}${path}`);
  const served = async (index: number): Promise<number> => {
    const text = await (await together('/metrics')).text();
    const counts = [
      ...text.matchAll(
        /^continuo_origin_requests_total\{origin="origin-(\d)",route="\/generate",status="200"\} (\d+)$/gm,
      ),
    ];
    return counts.reduce((sum, [, origin, count]) => sum + (Number(origin) === index ? Number(count) : 0), 0);
  };
  const healthOf = async (name: string): Promise<string | undefined> => {
    const { status, origins } = (await (await together('/health')).json()) as {
      status: string;
      origins: Record<string, { status: string } | null>;
    };
    expect(status).toBe('ready');
    return origins[name]?.status;
  };
  const pidOf = (name: string): number => {
    const log = readFileSync(path.join(system.stateDirectory, `${name}.log`), 'utf8');
    return Number([...log.matchAll(/"pid":(\d+)/g)].at(-1)?.[1]);
  };
  const prompts = Array.from({ length: 16 }, (_, index) => `${index}. Once upon a time`);

  const before = await Promise.all(prompts.map(complete));
  expect(before.map(({ status }) => status)).toEqual(prompts.map(() => 200));
  expect(new Set(before.map(({ fingerprint }) => fingerprint)).size).toBe(1);
  const counts = [await served(0), await served(1)];
  expect(Math.min(...counts)).toBeGreaterThan(0);
  expect(counts[0]! + counts[1]!).toBe(prompts.length);
  expect(await healthOf('origin-1')).toBe('ready');

  process.kill(pidOf('origin-1'), 'SIGKILL');
  const during = await Promise.all(prompts.map(complete));
  expect(during).toEqual(before);
  await expect.poll(() => system.output(), { timeout: 30_000 }).toContain('The origin-1 died (SIGKILL)');

  const again = async () => {
    await Promise.all(prompts.map(complete));
    return served(1);
  };
  await expect.poll(again, { timeout: 40_000, interval: 500 }).toBeGreaterThan(0);
  expect(await healthOf('origin-1')).toBe('ready');
});
