import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { untilReady } from '../../../origin/cli/start/readiness.ts';
import { freePort } from '../../support/system.ts';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../../worker/admin/admin-client.ts';
import { SECRET } from '../../worker/support/fake-origin.ts';
import { spawnOrigin, writeRealModel } from '../../worker/support/real-origin.ts';
import { spawnWorker } from '../../worker/support/worker-process.ts';
import { LOAD_REQUESTS, sendLoad } from './kill-load.ts';
import { patiently } from './kills.ts';
import type { Measurement, Scenario } from './scenario.ts';

/** The pause of the chart's hook, in milliseconds. */
const HOOK_MS = (() => {
  const chart = path.resolve(import.meta.dirname, '../../../origin/deploy/helm/templates/origin.yaml');
  return 1000 * Number(/preStop: { sleep: { seconds: (\d+) } }/.exec(readFileSync(chart, 'utf8'))![1]);
})();
/** How late the nodes' rules may follow a pod that begins to stop. */
const PROPAGATION_MS = 2_000;
const READY_MS = 60_000;
const REPLICAS = 2;
const TENANT = 'rollout';

type Replica = Awaited<ReturnType<typeof spawnOrigin>>;

/** As kube-proxy: each new connection goes to the next ready replica and stays there. */
async function startService(ready: readonly Replica[]) {
  let next = 0;
  const server = createServer((client) => {
    const { port } = new URL(ready[next++ % ready.length]!.url);
    const replica = connect(Number(port), '127.0.0.1');
    client.pipe(replica).pipe(client);
    for (const [one, other] of [
      [client, replica],
      [replica, client],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  const port = await freePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${port}`, stop: () => server.close() };
}

/** Replaces each replica in the kubelet's order: ready, leave the Service, hook, SIGTERM, drain, exit. */
async function rollOut(ready: Replica[], model: string): Promise<void> {
  for (const old of [...ready]) {
    const successor = await spawnOrigin(model);
    successor.child.stdout?.resume();
    await untilReady(`${successor.url}/health`, READY_MS, new AbortController().signal);
    ready.push(successor);
    await Promise.all([
      sleep(PROPAGATION_MS).then(() => ready.splice(ready.indexOf(old), 1)),
      sleep(HOOK_MS).then(() => old.child.kill('SIGTERM')),
    ]);
    if (old.child.exitCode === null) await once(old.child, 'exit');
  }
}

async function run(): Promise<readonly Measurement[]> {
  const model = writeRealModel();
  const ready = await Promise.all(Array.from({ length: REPLICAS }, () => spawnOrigin(model)));
  for (const { child } of ready) child.stdout?.resume();
  const service = await startService(ready);
  const worker = await spawnWorker({
    origin: { url: service.url, secret: SECRET },
    vars: { ADMIN_KEY_SHA256 },
    options: {},
  });
  try {
    const { key } = await tenantWithKey(worker, TENANT, { concurrent_requests: 2 * LOAD_REQUESTS });
    let isOver = false;
    const load = sendLoad(worker, key, () => isOver);
    await rollOut(ready, model).finally(() => {
      isOver = true;
    });
    const received = await load;
    const { completion_tokens: billed = 0 } = await patiently(
      async () => (await admin(worker, 'GET', `/usage?tenant=${TENANT}`)).body.total,
      ({ completion_tokens: tokens = 0 }) => tokens >= received.tokens,
    );
    return [
      { figure: 'requests', value: received.sent.length },
      { figure: 'failed requests', value: received.sent.length - received.complete, atMost: 0 },
      { figure: 'tokens received', value: received.tokens, atLeast: 1 },
      { figure: 'tokens billed minus received', value: billed - received.tokens, atMost: 0, atLeast: 0 },
    ];
  } finally {
    await worker.kill();
    service.stop();
    for (const { child } of ready) child.kill('SIGKILL');
    rmSync(model, { recursive: true, force: true });
  }
}

export const rollout: Scenario = {
  name: 'rollout',
  summary: `Replaces ${REPLICAS} origins behind one Service in the order of Kubernetes, under load.`,
  run,
};
