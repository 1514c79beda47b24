import { messageOf } from '../../shared/message-of.ts';
import type { OriginConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import type { Fleet } from './fleet.ts';
import { requireBudget, UNLIMITED } from './memory-budget.ts';
import { type ModelSet, readModelsFile } from './models-file.ts';
import { surveyBeside } from './survey-beside.ts';

/** The configured models: those of the file, or the one of the variables. @throws Error one line */
export const readModels = ({ modelsFile, model }: OriginConfig): ModelSet =>
  modelsFile === null ? { models: [model], limits: UNLIMITED } : readModelsFile(modelsFile, model);

/**
 * From now on SIGHUP reads the models' file again: what is new appears, what is gone finishes its streams and goes, what
 * has changed is replaced. A file that cannot be served is one line in the log, and everything stays as it was.
 */
export function reloadOnSignal(config: OriginConfig, fleet: Fleet, log: Logger): void {
  let last = Promise.resolve();
  process.on('SIGHUP', () => {
    last = last.then(() => reload(config, fleet, log));
  });
}

async function reload(config: OriginConfig, fleet: Fleet, log: Logger): Promise<void> {
  try {
    const { models, limits } = readModels(config);
    const surveyed = await surveyBeside(models);
    requireBudget(surveyed, limits);
    fleet.configure(surveyed, limits);
    log.info({ models: models.map(({ name }) => name) }, 'models reloaded');
  } catch (error) {
    log.error({ reason: messageOf(error) }, 'the new models are refused, the old ones stay');
  }
}
