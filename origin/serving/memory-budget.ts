import type { SurveyedModel } from './survey.ts';

const MIB = 2 ** 20;
const inMiB = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

export const bytesOf = ({ weightBytes, kvBytes }: SurveyedModel): number => weightBytes + kvBytes;

/**
 * All models must fit together, loaded or not: whatever is asked for can then be loaded.
 * @throws Error one line with the numbers
 */
export function requireBudget(models: readonly SurveyedModel[], limitBytes: number): void {
  const needed = models.reduce((sum, model) => sum + bytesOf(model), 0);
  if (needed <= limitBytes) return;
  const parts = models.map(
    ({ settings: { name }, weightBytes, kvBytes }) =>
      `${name} ${inMiB(weightBytes)} of weights and ${inMiB(kvBytes)} of KV cache`,
  );
  throw new Error(
    `the models need ${inMiB(needed)}, but memoryMiB is ${limitBytes / MIB}: ${parts.join(', ')}`,
  );
}
