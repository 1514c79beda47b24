import type { SurveyedModel } from './survey.ts';

const MIB = 2 ** 20;
const inMiB = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

/** Of main memory: what runs on a device has a limit of its own there. */
export const bytesOf = ({ settings, weightBytes, kvBytes }: SurveyedModel): number =>
  settings.engine.device.provider === 'cpu' ? weightBytes + kvBytes : 0;

/**
 * All models must fit together, loaded or not: whatever is asked for can then be loaded.
 * @throws Error one line with the numbers
 */
export function requireBudget(models: readonly SurveyedModel[], limitBytes: number): void {
  const needed = models.reduce((sum, model) => sum + bytesOf(model), 0);
  if (needed <= limitBytes) return;
  const parts = models
    .filter((model) => bytesOf(model) > 0)
    .map(
      ({ settings: { name }, weightBytes, kvBytes }) =>
        `${name} ${inMiB(weightBytes)} of weights and ${inMiB(kvBytes)} of KV cache`,
    );
  throw new Error(
    `the models need ${inMiB(needed)}, but memoryMiB is ${limitBytes / MIB}: ${parts.join(', ')}`,
  );
}
