import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, errorMessage } from '@continuo/shared/error-details.ts';
import { type OriginConfig, readConfig } from './config/config.ts';
import { requireDirectory } from './config/writable-directory.ts';
import { authenticator, importSecrets } from './http/authentication.ts';
import { HEARTBEAT_MS, READER_LIMITS } from './http/event-stream.ts';
import { createMetrics, recordSteps } from './http/metrics.ts';
import type { ServerContext } from './http/route.ts';
import { createMetricsServer, createOriginServer } from './http/server.ts';
import { createTraceExport } from './http/trace-export.ts';
import { endProcess } from './model/ort/end-process.ts';
import { createEngineLocks } from './process/engine-locks.ts';
import { createLog, type Logger } from './process/log.ts';
import { UsageAccounts } from './request/usage-accounts.ts';
import { buildModels, logBuild } from './serving/build-models.ts';
import { Fleet } from './serving/fleet.ts';
import { faultError, withFaulty } from './serving/inspect-model.ts';
import { inspectModels } from './serving/inspect-models.ts';
import { type LoadHooks, loadModel } from './serving/load-model.ts';
import { requireBudget } from './serving/memory-budget.ts';
import { readModels } from './serving/models-file.ts';
import { reloadOnSignal } from './serving/reload.ts';
import { Service } from './serving/service.ts';

/** Time for the engines to stop and for the last events to reach their readers. */
const STOP_MS = 2000;
/** Time in which a stopping origin serves, ending connections, so that a balancer moves on. */
const LEAVE_MS = 2000;

/**
 * Runs the origin: listens, loads its models, serves, and drains on SIGTERM or SIGINT. A second signal exits
 * at once. A failed start is one line on stderr and exit code 1, and so is a device that is lost to the
 * process: only another process can use it again.
 */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const { directory } = config.model.engine.prefixDisk;
  if (directory !== null) requireDirectory(directory, 'CONTINUO_PREFIX_CACHE_DIR');
  const log = createLog(config.logLevel);
  const now = () => performance.now();
  const engineLocks = createEngineLocks();
  const deviceLost = Promise.withResolvers<string>();
  const onDeviceLost = deviceLost.resolve;
  const hooks = { log, now, engineLocks, prefixSecret: config.prefixSecret, onDeviceLost };
  const fleet = new Fleet({
    load: (model) => {
      const onSteps: LoadHooks['onSteps'] = (reports) => recordSteps(metrics, model.settings.name, reports);
      return loadModel(model, { ...hooks, stallMs: config.stallMs, onSteps });
    },
    now,
    log,
    onDeviceLost,
  });
  const service = new Service(fleet);
  const metrics = createMetrics({ health: () => service.health, engines: () => fleet.engines });
  const randomHex = (bytes: number) => randomBytes(bytes).toString('hex');
  const traces = createTraceExport(process.env, { fetch, log, randomHex });
  const context: ServerContext = {
    service,
    metrics,
    log,
    traces,
    authenticate: authenticator(await importSecrets(config.secrets), Date.now, log),
    readerLimits: READER_LIMITS,
    heartbeatMs: HEARTBEAT_MS,
    usageAccounts: new UsageAccounts(Date.now),
    now: Date.now,
    newId: randomUUID,
    drawSeed: () => randomInt(2 ** 48 - 1),
  };
  const server = createOriginServer(context);
  const ended = Promise.race([stopOnSignal(service, server, config, log), deviceLost.promise]);
  // Installed before listening, because SIGHUP without a handler ends the process. It takes effect after the
  // first configuration.
  if (config.modelsFile !== null) reloadOnSignal(config, fleet, log);
  await listen(server, config.host, config.port);
  log.info({ ...addressOf(server), pid: process.pid }, 'listening');
  if (config.metricsPort !== null) {
    const metricsServer = createMetricsServer(context);
    await listen(metricsServer, config.host, config.metricsPort);
    log.info(addressOf(metricsServer), 'metrics');
  }
  await Promise.race([startModels(config, fleet, log), ended]);
  const lostDevice = await ended;
  service.drain();
  await endOpenStreams(fleet, service);
  await traces?.flush();
  if (lostDevice === null) {
    log.info('stopped');
    process.exit(0);
  }
  complain(lostDevice);
  endProcess(1);
}

/** Writes one line on stderr. */
function complain(message: string): void {
  process.stderr.write(`continuo origin: ${message}\n`);
}

/** Resolves when the models are loaded. @throws Error one line, if none can be served */
async function startModels(config: OriginConfig, fleet: Fleet, log: Logger): Promise<void> {
  const { models, limits, faulty } = await buildModels(readModels(config), logBuild(log));
  const inspection = withFaulty(inspectModels(models, limits), faulty);
  if (inspection.models.length === 0) throw faultError(inspection.faulty[0]!);
  requireBudget(inspection.models, limits);
  fleet.configure(inspection, limits);
  await fleet.whenStarted();
}

/** @throws Error one line, if the port is taken or the address is not local */
async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const taken = errorCode(error) === 'EADDRINUSE';
    const why = taken ? `port ${port} is taken` : errorMessage(error);
    throw new Error(`cannot listen on ${host}: ${why}`);
  }
}

function addressOf(server: Server) {
  const { address: host, port } = server.address() as AddressInfo;
  return { host, port };
}

/** Resolves after a signal, once running requests have finished or the drain time is over. */
async function stopOnSignal(
  service: Service,
  server: Server,
  { drainMs }: OriginConfig,
  log: Logger,
): Promise<null> {
  const signal = await new Promise<string>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, resolve);
  });
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => process.exit(130));
  log.info({ signal, drainMs }, 'draining');
  const leaveMs = Math.min(LEAVE_MS, drainMs);
  service.leave();
  await sleep(leaveMs);
  service.drain();
  server.closeIdleConnections();
  await Promise.race([service.whenIdle(), sleep(drainMs - leaveMs)]);
  return null;
}

/** Ends the remaining streams with an error event instead of a broken connection. */
async function endOpenStreams(fleet: Fleet, service: Service): Promise<void> {
  const ended = fleet.stop().then(() => service.whenIdle());
  await Promise.race([ended, sleep(STOP_MS)]);
}

main().catch((error: unknown) => {
  complain(errorMessage(error));
  process.exit(1);
});
