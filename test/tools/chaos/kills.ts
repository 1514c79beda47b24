import { setTimeout as sleep } from 'node:timers/promises';
import { mulberry32, TEST_SEED } from '../../support/random.ts';
import { admin, tenantWithKey } from '../../worker/admin/admin-client.ts';
import { LOAD_REQUESTS, type Received, sendLoad } from './kill-load.ts';
import { KillableSystem, type Victim } from './killable-system.ts';
import type { Measurement, Scenario } from './scenario.ts';

/** Kills of each process in the scenarios. */
const KILLS = 100;
/** The kill comes at random within this time of load: during admission, prefill, decode or settlement. */
const WITHIN_MS = 1_500;
/** A slot that is not free, or a bill that is not final, after this time is lost. */
const PATIENCE_MS = 60_000;

/** A kill: what clients had received, and whether all slots became free. */
interface Kill {
  readonly tenant: string;
  readonly keyId: string;
  readonly received: Received;
  readonly leakedSlots: number;
}

export interface KillReport {
  /** Tokens that clients received, and tokens in the ledger. */
  readonly received: number;
  readonly billed: number;
  /** Kills after which the ledger has fewer tokens than the clients received. */
  readonly underbilled: number;
  readonly leakedSlots: number;
  readonly falseEnds: number;
  readonly complete: number;
}

/** Returns the last answer of `ask`: the first wanted one, or the one after PATIENCE_MS. */
export async function patiently<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await ask();
    if (wanted(answer) || performance.now() > until) return answer;
    await sleep(100);
  }
}

/** Returns how many streams of a tenant run at the same time, up to its slots. */
async function freeSlots({ client }: KillableSystem, key: string): Promise<number> {
  const end = new AbortController();
  const body = { model: 'default', prompt: 'Hi', max_tokens: 400, ignore_eos: true, stream: true };
  const init = { headers: { authorization: `Bearer ${key}` }, signal: end.signal };
  const answers = await Promise.all(
    Array.from({ length: LOAD_REQUESTS }, () => client.post(body, init).catch(() => null)),
  );
  end.abort();
  return answers.filter((answer) => answer?.status === 200).length;
}

async function killOnce(
  system: KillableSystem,
  victim: Victim,
  tenant: string,
  afterMs: number,
): Promise<Kill> {
  const limits = { concurrent_requests: LOAD_REQUESTS };
  const { key, keyId } = await tenantWithKey(system.client, tenant, limits);
  // The ledger counts by key, so these requests do not hide what the others were billed.
  const other = await admin(system.client, 'POST', '/keys', { tenant, name: 'slots' });
  let isOver = false;
  const load = sendLoad(system.client, key, () => isOver);
  await sleep(afterMs);
  isOver = true;
  await system.kill(victim);
  const received = await load;
  await system.restart(victim);
  const free = await patiently(
    () => freeSlots(system, other.body.key),
    (count) => count === LOAD_REQUESTS,
  );
  return { tenant, keyId, received, leakedSlots: LOAD_REQUESTS - free };
}

/** Returns the tokens in the ledger once they reach what was received, or after PATIENCE_MS. */
function billedTokens({ client }: KillableSystem, { tenant, keyId, received }: Kill): Promise<number> {
  const ask = async () => {
    const { body } = await admin(client, 'GET', `/usage?tenant=${tenant}&group_by=key`);
    const rows = body.data as unknown as { readonly key: string; readonly completion_tokens: number }[];
    return rows.find((row) => row.key === keyId)?.completion_tokens ?? 0;
  };
  return patiently(ask, (tokens) => tokens >= received.tokens);
}

/** Kills and restarts one process under load, at random moments. @param random returns numbers in [0, 1) */
export async function killRepeatedly(
  victim: Victim,
  kills: number,
  random: () => number,
): Promise<KillReport> {
  const system = await KillableSystem.start();
  const done: Kill[] = [];
  try {
    for (let count = 0; count < kills; count += 1) {
      done.push(await killOnce(system, victim, `${victim}-${count}`, random() * WITHIN_MS));
    }
    const billed = await Promise.all(done.map((kill) => billedTokens(system, kill)));
    const underbilled = done.filter(({ received }, index) => billed[index]! < received.tokens);
    for (const kill of underbilled) console.error(`billed less than received: ${JSON.stringify(kill)}`);
    const sum = (of: (kill: Kill) => number) => done.reduce((total, kill) => total + of(kill), 0);
    return {
      received: sum(({ received }) => received.tokens),
      billed: billed.reduce((total, tokens) => total + tokens, 0),
      underbilled: underbilled.length,
      leakedSlots: sum(({ leakedSlots }) => leakedSlots),
      falseEnds: sum(({ received }) => received.falseEnds),
      complete: sum(({ received }) => received.complete),
    };
  } finally {
    await system.stop();
  }
}

async function measure(victim: Victim): Promise<readonly Measurement[]> {
  console.log(`seed ${TEST_SEED}; TEST_SEED=${TEST_SEED} repeats the moments of the kills`);
  const report = await killRepeatedly(victim, KILLS, mulberry32(TEST_SEED));
  return [
    { figure: `kills of ${victim}`, value: KILLS },
    { figure: 'complete answers', value: report.complete },
    { figure: 'tokens received', value: report.received },
    { figure: 'tokens billed', value: report.billed },
    { figure: 'kills with less billed than received', value: report.underbilled, atMost: 0 },
    { figure: 'slots that stayed taken', value: report.leakedSlots, atMost: 0 },
    { figure: 'false ends', value: report.falseEnds, atMost: 0 },
  ];
}

const scenarioOf = (victim: Victim): Scenario => ({
  name: `kill-${victim}`,
  summary: `SIGKILL of ${victim} at ${KILLS} random moments under streamed and plain requests.`,
  run: () => measure(victim),
});

export const killOrigin = scenarioOf('origin');
export const killWorkerd = scenarioOf('workerd');
