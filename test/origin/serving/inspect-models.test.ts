import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../origin/config/config.ts';
import type { ModelSettings } from '../../../origin/config/model-settings.ts';
import type { ProviderChoice } from '../../../origin/model/config/device.ts';
import type { InspectedModel } from '../../../origin/serving/inspect-model.ts';
import {
  inspectModels,
  withAutomaticSlots,
  withAutomaticStores,
} from '../../../origin/serving/inspect-models.ts';
import { bytesIn, limitOf, NO_MEMORY_LIMITS } from '../../../origin/serving/memory-budget.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { inspectedModel, settingsOf } from './inspected-model.ts';

const MIB = 2 ** 20;
const SLOT = 12 * MIB;

/** A model with 16 MiB of weights, as inspected before it gets its slots. */
const model = (name: string, { slots = 1, maxSlots = 64, provider = 'cpu' as ProviderChoice } = {}) =>
  inspectedModel(settingsOf(name, { provider }), {
    contextLength: 2048,
    weightBytes: 16 * MIB,
    slots,
    maxSlots,
    slotBytes: SLOT,
    kvBytes: slots * SLOT,
  });

const slotsOf = (models: readonly InspectedModel[], freeMiB: number | null, mainMiB = Infinity) =>
  withAutomaticSlots(
    models,
    { ...NO_MEMORY_LIMITS, mainBytes: mainMiB * MIB },
    () => freeMiB && freeMiB * MIB,
  ).map(({ slots }) => slots);

it('fills half of the free memory with slots, at least 1 and at most 64', () => {
  expect(slotsOf([model('a')], 3072)).toEqual([64]);
  // Half of 400 − 16 of weights − 12 of the first slot holds 15.5 more.
  expect(slotsOf([model('a')], 400)).toEqual([16]);
  expect(slotsOf([model('a')], 20)).toEqual([1]);
  expect(slotsOf([model('a', { maxSlots: 8 })], 3072)).toEqual([8]);
});

it('fills nine tenths of what weights leave of a card', () => {
  // 0.9 · (400 − 16 − 12) holds 27.9 more.
  expect(slotsOf([model('a', { provider: 'cuda' })], 400)).toEqual([28]);
});

it('shares the memory equally between models, after the fixed numbers of the others', () => {
  // 1,000 − 3 · 16 of weights − 22 slots of 12 leaves 688; each gets a quarter of it, 14 slots.
  expect(slotsOf([model('a'), model('b', { slots: 20, maxSlots: 20 }), model('c')], 1000)).toEqual([
    15, 20, 15,
  ]);
});

it('fills half of the limit of the models file, however much is free', () => {
  // Half of 500 − 2 · 28 holds 9 more of each.
  expect(slotsOf([model('a'), model('b')], 100_000, 500)).toEqual([10, 10]);
  expect(slotsOf([model('a'), model('b')], 0, 500)).toEqual([10, 10]);
});

const storesOf = (models: readonly InspectedModel[], freeMiB: number, mainMiB = Infinity) =>
  withAutomaticStores(models, { ...NO_MEMORY_LIMITS, mainBytes: mainMiB * MIB }, () => freeMiB * MIB).map(
    ({ storeBytes }) => storeBytes / MIB,
  );

it('shares a quarter of the main memory that is left between the prefix stores, at most 8 GiB each', () => {
  expect(storesOf([model('a')], 428)).toEqual([100]);
  expect(storesOf([model('a'), model('b')], 456)).toEqual([50, 50]);
  expect(storesOf([model('a'), model('b', { provider: 'cuda' })], 428)).toEqual([50, 50]);
  expect(storesOf([model('a')], 1_000_000)).toEqual([8192]);
  expect(storesOf([model('a')], 10)).toEqual([0]);
});

it('leaves a given size of a prefix store, and keeps all stores within the limit of the models file', () => {
  const given = model('given');
  const engine = { ...given.settings.engine, prefixCacheBytes: 30 * MIB };
  const fixed = { ...given, storeBytes: 30 * MIB, settings: { ...given.settings, engine } };
  // 186 − 3 · 28 of weights and slots − 30 leaves 72 for two.
  expect(storesOf([fixed, model('a'), model('b')], 1_000_000, 186)).toEqual([30, 36, 36]);
  expect(storesOf([fixed, model('a')], 1_000_000, 80)).toEqual([30, 0]);
});

it('takes 8 slots if the device does not report its memory', () => {
  expect(slotsOf([model('a', { provider: 'webgpu' }), model('b', { provider: 'webgpu' })], null)).toEqual([
    8, 8,
  ]);
});

it('restarts no engine because the free memory changed, but if its share of the limit changed', () => {
  const keys = (models: readonly InspectedModel[], freeMiB: number, mainMiB = Infinity) =>
    withAutomaticSlots(models, { ...NO_MEMORY_LIMITS, mainBytes: mainMiB * MIB }, () => freeMiB * MIB).map(
      ({ key }) => key,
    );
  expect(keys([model('a')], 400)).toEqual(keys([model('a')], 300));
  expect(keys([model('a')], 400, 500)).toEqual(keys([model('a')], 300, 500));
  expect(keys([model('a')], 400, 500)[0]).not.toBe(keys([model('a'), model('b')], 400, 500)[0]);
});

const directory = newDirectory();

/** Settings of a model in a directory of its own, on a card. */
function onCard(name: string, changes: Partial<ModelSettings['engine']> = {}): ModelSettings {
  const home = join(directory, name);
  if (!existsSync(home))
    writeByteTokenizer(home, writeSyntheticModel(home, { vocabulary: 320, contextLength: 8192 }).vocabulary);
  const settings = settingsOf(name, { provider: 'cuda' });
  return { ...settings, engine: { ...settings.engine, directory: home, ...changes } };
}

describe('a reload beside an engine that fills its card', () => {
  const CARD = 600 * MIB;
  const card = 'CUDA card 0';
  const sizesOf = ({ slots, contextLength, kvBytes }: InspectedModel) => ({ slots, contextLength, kvBytes });
  const start = (settings: ModelSettings) =>
    inspectModels([settings], NO_MEMORY_LIMITS, undefined, () => CARD).models[0]!;
  const reload = (configured: readonly ModelSettings[], old: InspectedModel) => {
    const held = bytesIn(card, [old]);
    const served = { models: [old], held: { [card]: held } };
    return inspectModels(configured, NO_MEMORY_LIMITS, served, () => CARD - held);
  };

  it('keeps context and slots of a model that has not changed, and gives a changed one as many', () => {
    const old = start(onCard('kept'));
    expect(old.slots).toBeGreaterThan(20);
    expect(old.kvBytes).toBeGreaterThan(CARD / 2);
    expect(sizesOf(reload([onCard('kept')], old).models[0]!)).toEqual(sizesOf(old));
    const { models } = reload([onCard('kept', { promptShare: 0.3 })], old);
    expect(models[0]!.key).not.toBe(old.key);
    expect(sizesOf(models[0]!)).toEqual(sizesOf(old));
  });

  it('gives a new model what the others leave', () => {
    const old = start(onCard('kept'));
    const [same, added] = reload([onCard('kept'), onCard('added')], old).models;
    expect(sizesOf(same!)).toEqual(sizesOf(old));
    expect(bytesIn(card, [same!, added!])).toBeLessThan(CARD);
  });

  it('lets a changed model wait for the old one, for which the card has no room beside it', () => {
    const old = start(onCard('kept'));
    const { models, cards } = reload([onCard('kept', { promptShare: 0.3 })], old);
    const limit = limitOf(NO_MEMORY_LIMITS, cards)(card);
    expect(bytesIn(card, models)).toBeLessThanOrEqual(limit);
    expect(bytesIn(card, [old, ...models])).toBeGreaterThan(limit);
  });
});

function inspected(name: string, environment: Record<string, string>, options: Partial<SyntheticModel> = {}) {
  const home = join(directory, name);
  writeByteTokenizer(home, writeSyntheticModel(home, { vocabulary: 320, ...options }).vocabulary);
  const { model: one } = readConfig({
    CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes',
    CONTINUO_MODEL_DIR: home,
    ...environment,
  });
  const { models, faulty } = inspectModels([one], NO_MEMORY_LIMITS);
  expect(faulty).toEqual([]);
  return models[0]!;
}

it('fills the operator’s KV memory, and a given number of slots stays', () => {
  const { slotBytes, ...free } = inspected('free', {});
  expect(free).toMatchObject({ slots: 64, kvBytes: 64 * slotBytes });
  const perMiB = MIB / slotBytes;
  expect(inspected('limited', { CONTINUO_KV_MEMORY_MIB: '1' })).toMatchObject({
    slots: perMiB,
    kvBytes: MIB,
  });
  expect(inspected('given', { CONTINUO_SLOTS: '3' })).toMatchObject({
    slots: 3,
    maxSlots: 3,
    kvBytes: 3 * slotBytes,
  });
});
