import { randomInt, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../shared/message-of.ts';
import { importSigningKey } from '../shared/signing.ts';
import { type OriginConfig, readConfig } from './config/config.ts';
import { Authenticator } from './http/authentication.ts';
import { READER_LIMITS } from './http/event-stream.ts';
import type { ServerContext } from './http/exchange.ts';
import { HEARTBEAT_MS } from './http/heartbeat.ts';
import { createMetrics, recordSteps } from './http/metrics.ts';
import { createOriginServer } from './http/server.ts';
import { createLog, type Logger } from './log.ts';
import { UsageAccounts } from './request/usage-accounts.ts';
import { Fleet } from './serving/fleet.ts';
import { load } from './serving/load.ts';
import { requireBudget } from './serving/memory-budget.ts';
import { readModels, reloadOnSignal } from './serving/reload.ts';
import { Service } from './serving/service.ts';
import { surveyModel } from './serving/survey.ts';
import { systemCode } from './system-code.ts';

/** Time for the engine to stop and for the last lines to reach their readers. */
const LAST_WORDS_MS = 2000;

/**
 * The origin: listens at once, loads its models, serves, and drains on SIGTERM or SIGINT (a second signal exits at
 * once). Whatever stops the start is one line on stderr and exit code 1.
 */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  const fleet = new Fleet({
    load: (model) =>
      load(model, { log, onSteps: (reports) => recordSteps(metrics, model.settings.name, reports) }),
    now: () => performance.now(),
    log,
  });
  const service = new Service(fleet);
  const metrics = createMetrics({ health: () => service.health, engines: () => fleet.engines });
  const context: ServerContext = {
    service,
    metrics,
    log,
    authenticator: new Authenticator(await importSigningKey(config.secret), Date.now),
    readerLimits: READER_LIMITS,
    heartbeatMs: HEARTBEAT_MS,
    usageAccounts: new UsageAccounts(Date.now),
    now: Date.now,
    newId: randomUUID,
    drawSeed: () => randomInt(2 ** 48 - 1),
  };
  const server = createOriginServer(context);
  const stopped = stopOnSignal(service, config, log);
  // Before anybody can know that this process runs: unheard, the signal would end it. It is answered once this has
  // configured the first models.
  if (config.modelsFile !== null) reloadOnSignal(config, fleet, log);
  await listen(server, config, log);
  const { models, limits } = readModels(config);
  const surveyed = models.map(surveyModel);
  requireBudget(surveyed, limits);
  fleet.configure(surveyed, limits);
  await Promise.race([fleet.whenStarted(), stopped]);
  await stopped;
  await endOpenStreams(fleet, service);
  log.info('stopped');
  process.exit(0);
}

async function listen(server: Server, { host, port }: OriginConfig, log: Logger): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const taken = systemCode(error) === 'EADDRINUSE';
    const why = taken ? `port ${port} is taken` : messageOf(error);
    throw new Error(`cannot listen on ${host}: ${why}`);
  }
  log.info({ host, port: (server.address() as AddressInfo).port, pid: process.pid }, 'listening');
}

/** Resolves when a signal came and what was running has finished or run out of time. */
async function stopOnSignal(service: Service, { drainMs }: OriginConfig, log: Logger): Promise<null> {
  const signal = await new Promise<string>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, resolve);
  });
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => process.exit(130));
  log.info({ signal, drainMs }, 'draining');
  service.drain();
  await Promise.race([service.whenIdle(), sleep(drainMs)]);
  return null;
}

/** Streams that outlived the drain end with an error event instead of a torn connection. */
async function endOpenStreams(fleet: Fleet, service: Service): Promise<void> {
  const ended = fleet.stop().then(() => service.whenIdle());
  await Promise.race([ended, sleep(LAST_WORDS_MS)]);
}

main().catch((error: unknown) => {
  process.stderr.write(`continuo origin: ${messageOf(error)}\n`);
  process.exit(1);
});
