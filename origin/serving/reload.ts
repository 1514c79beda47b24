import { Worker } from 'node:worker_threads';
import { errorMessage } from '@continuo/shared/error-details.ts';
import type { OriginConfig } from '../config/config.ts';
import type { Logger } from '../process/log.ts';
import { buildModels, logBuild } from './build-models.ts';
import type { Fleet } from './fleet.ts';
import { faultError, type Inspection, withFaulty } from './inspect-model.ts';
import type { InspectThreadData } from './inspect-thread.ts';
import { requireBudget } from './memory-budget.ts';
import { readModels } from './models-file.ts';

/**
 * Installs a SIGHUP handler that reads the models file again. New models appear, removed ones finish their
 * streams, and changed ones are replaced. A faulty file, or a fault in a model that is served now, is one log
 * line and changes nothing.
 */
export function reloadOnSignal(config: OriginConfig, fleet: Fleet, log: Logger): void {
  let last = Promise.resolve();
  process.on('SIGHUP', () => {
    last = last.then(() => reload(config, fleet, log));
  });
}

async function reload(config: OriginConfig, fleet: Fleet, log: Logger): Promise<void> {
  try {
    const { faulty, ...built } = await buildModels(readModels(config), logBuild(log));
    const { models, limits } = built;
    const inspection = withFaulty(await inspectInThread({ ...built, served: fleet.served }), faulty);
    const served = inspection.faulty.find(({ settings }) => fleet.serves(settings.name));
    if (served !== undefined) throw faultError(served);
    requireBudget(inspection.models, limits);
    fleet.configure(inspection, limits);
    log.info({ models: models.map(({ name }) => name) }, 'models reloaded');
  } catch (error) {
    log.error({ reason: errorMessage(error) }, 'reload failed; the old models stay');
  }
}

/** Inspects models in a thread: large graphs take time. @throws Error if the thread fails */
async function inspectInThread(workerData: InspectThreadData): Promise<Inspection> {
  const thread = new Worker(new URL('./inspect-thread.ts', import.meta.url), { workerData });
  return await new Promise<Inspection>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('the models could not be read')));
  });
}
