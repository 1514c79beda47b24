import { readConfig } from '../../../origin/config/config.ts';
import type { ModelSettings } from '../../../origin/config/model-settings.ts';
import type { DeviceSettings } from '../../../origin/model/config/device.ts';
import type { InspectedModel } from '../../../origin/serving/inspect-model.ts';

const BASE = readConfig({ CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes' }).model;

/** Settings of the model that one variable per setting would give. */
export const settingsOf = (name: string, device: Partial<DeviceSettings> = {}): ModelSettings => ({
  ...BASE,
  name,
  engine: { ...BASE.engine, device: { ...BASE.engine.device, ...device } },
});

/** Returns the result of an inspection: a model that needs no memory, with `changes`. */
export const inspectedModel = (
  settings: ModelSettings,
  changes: Partial<InspectedModel> = {},
): InspectedModel => ({
  settings,
  key: settings.name,
  build: null,
  created: 0,
  content: '',
  contextLength: 64,
  vocabularySize: 256,
  infill: false,
  defaults: {},
  weightBytes: 0,
  slots: 1,
  maxSlots: 1,
  slotBytes: 0,
  kvBytes: 0,
  runBytes: 0,
  contextNote: null,
  storeBytes: 0,
  ...changes,
});
