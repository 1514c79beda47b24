import { expect, it } from 'vitest';
import type { DeviceSettings } from '../../../origin/model/config/device.ts';
import type { InspectedModel } from '../../../origin/serving/inspect-model.ts';
import { type MemoryLimits, NO_MEMORY_LIMITS, requireBudget } from '../../../origin/serving/memory-budget.ts';
import { inspectedModel, settingsOf } from './inspected-model.ts';

const MIB = 2 ** 20;

const model = (name: string, device: Partial<DeviceSettings>) => {
  const sizes = { weightBytes: 60 * MIB, slotBytes: 30 * MIB, kvBytes: 30 * MIB };
  return inspectedModel(settingsOf(name, device), sizes);
};

const FIRST = model('first', { provider: 'cuda' });
const SECOND = model('second', { provider: 'cuda', deviceId: 1 });
const MAYBE = model('maybe', { provider: 'auto', deviceId: 1 });
const MAIN = model('main', { provider: 'cpu' });
const refused = (models: readonly InspectedModel[], limits: Partial<MemoryLimits>) => () =>
  requireBudget(models, { ...NO_MEMORY_LIMITS, ...limits });

it('models on one card must fit together; auto counts as the card, and cards are separate', () => {
  const limits = { cardBytes: 100 * MIB };
  expect(refused([FIRST, SECOND, MAIN, MAIN], limits)).not.toThrow();
  expect(refused([FIRST, SECOND, MAYBE], limits)).toThrow(
    'the models on CUDA card 1 need 180 MiB, but deviceMemoryMiB is 100: ' +
      'second 60 MiB of weights and 30 MiB of KV cache, maybe 60 MiB of weights and 30 MiB of KV cache',
  );
  expect(refused([FIRST, SECOND, MAYBE], {})).not.toThrow();
});

it('the prefix store of a model on a card counts in main memory', () => {
  const stored = { ...FIRST, storeBytes: 20 * MIB };
  expect(refused([MAIN, stored], { mainBytes: 110 * MIB, cardBytes: 90 * MIB })).not.toThrow();
  expect(refused([MAIN, stored], { mainBytes: 109 * MIB })).toThrow(
    'the models need 110 MiB, but memoryMiB is 109: ' +
      'main 60 MiB of weights and 30 MiB of KV cache, first 20 MiB for prefixes',
  );
});

it('models on the CPU must fit main memory together, apart from those on cards', () => {
  expect(refused([MAIN, FIRST, SECOND], { mainBytes: 100 * MIB })).not.toThrow();
  expect(refused([MAIN, MAIN], { mainBytes: 100 * MIB })).toThrow(
    /^the models need 180 MiB, but memoryMiB is 100: main 60 MiB/,
  );
});
