import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { ModelSettings } from '../../../origin/config/model-settings.ts';
import type { ProviderChoice } from '../../../origin/model/config/device.ts';
import { createLog } from '../../../origin/process/log.ts';
import { Fleet } from '../../../origin/serving/fleet.ts';
import type { InspectedModel, Inspection } from '../../../origin/serving/inspect-model.ts';
import type { LoadedModel } from '../../../origin/serving/load-model.ts';
import { NO_MEMORY_LIMITS } from '../../../origin/serving/memory-budget.ts';
import { ScriptedEngine } from '../http/scripted-engine.ts';
import { inspectedModel, settingsOf } from './inspected-model.ts';

type Choices = Partial<Pick<ModelSettings, 'load' | 'idleMs'>> & {
  readonly key?: string;
  readonly provider?: ProviderChoice;
};

const model = (name: string, { key = 'first', provider = 'cpu', ...choices }: Choices = {}) =>
  inspectedModel({ ...settingsOf(name, { provider }), ...choices }, { key });

const sound = (...models: readonly InspectedModel[]): Inspection => ({ models, faulty: [] });

/** A fleet whose loads end when the test ends them. */
function fleetOfLoads() {
  const loads = new Map<string, PromiseWithResolvers<LoadedModel>>();
  const fleet = new Fleet({
    load: ({ settings: { name }, key }) => {
      const load = Promise.withResolvers<LoadedModel>();
      loads.set(`${name} ${key}`, load);
      return load.promise;
    },
    now: () => performance.now(),
    log: createLog('silent'),
  });
  const loaded = async (load: string) => {
    const closing = { close: async () => undefined };
    const parts = { id: load, encoder: closing, tokenizerThreads: closing };
    const model = parts as unknown as LoadedModel['model'];
    loads.get(load)!.resolve({ model, engine: new ScriptedEngine() });
    await setImmediate();
  };
  const failed = async (load: string) => {
    loads.get(load)!.reject(new Error('it is too large'));
    await setImmediate();
  };
  return { fleet, loaded, failed };
}

async function startOf(fleet: Fleet): Promise<string> {
  const waiting = setImmediate('waiting');
  return await Promise.race([
    fleet.whenStarted().then(
      () => 'started',
      (error: Error) => error.message,
    ),
    waiting,
  ]);
}

describe('the start', () => {
  it('waits for the models with load: start, and succeeds if one of them can be served', async () => {
    const { fleet, loaded, failed } = fleetOfLoads();
    fleet.configure(sound(model('a'), model('b')), NO_MEMORY_LIMITS);
    await failed('b first');
    expect(await startOf(fleet)).toBe('waiting');
    await loaded('a first');
    expect(await startOf(fleet)).toBe('started');
    expect(fleet.models).toMatchObject([
      { phase: 'loaded', reason: null },
      { phase: 'failed', reason: 'it is too large' },
    ]);
  });

  it('fails with the first failure if no model can be served', async () => {
    const { fleet, failed } = fleetOfLoads();
    fleet.configure(sound(model('a'), model('b')), NO_MEMORY_LIMITS);
    await failed('b first');
    await failed('a first');
    expect(await startOf(fleet)).toBe('b: it is too large');
  });

  it('does not wait for a model whose files are faulty, and refuses its requests', async () => {
    const { fleet, loaded } = fleetOfLoads();
    const { settings } = model('b');
    const faulty = [{ settings: { ...settings, aliases: ['second'] }, reason: 'config.json is missing' }];
    fleet.configure({ models: [model('a')], faulty }, NO_MEMORY_LIMITS);
    await loaded('a first');
    expect(await startOf(fleet)).toBe('started');
    expect(fleet.find('default')).toBeNull();
    expect(fleet.take(fleet.find('second')!)).toEqual({ type: 'failed', retryAfterMs: null });
  });

  it('does not fail because of a model that a request loads meanwhile', async () => {
    const { fleet, loaded, failed } = fleetOfLoads();
    const lazy = model('lazy', { load: 'first-use' });
    fleet.configure(sound(model('a'), lazy), NO_MEMORY_LIMITS);
    expect(fleet.take(lazy)).toMatchObject({ type: 'loading' });
    await failed('lazy first');
    expect(await startOf(fleet)).toBe('waiting');
    await loaded('a first');
    expect(await startOf(fleet)).toBe('started');
  });

  it('is not affected by an engine that a reload replaced', async () => {
    const { fleet, loaded, failed } = fleetOfLoads();
    for (const key of ['first', 'second', 'third'])
      fleet.configure(sound(model('a', { key })), NO_MEMORY_LIMITS);
    await failed('a first');
    await loaded('a second');
    expect(await startOf(fleet)).toBe('waiting');
    expect(fleet.hasStarted).toBe(false);
    await loaded('a third');
    expect(await startOf(fleet)).toBe('started');
  });
});

describe('a reload', () => {
  it('that sets an idle limit unloads a model without any request', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const { fleet, loaded } = fleetOfLoads();
    fleet.configure(sound(model('a')), NO_MEMORY_LIMITS);
    await loaded('a first');
    fleet.configure(sound(model('a', { idleMs: 1000 })), NO_MEMORY_LIMITS);
    vi.advanceTimersByTime(999);
    expect(fleet.models[0]!.phase).toBe('loaded');
    vi.advanceTimersByTime(2);
    expect(fleet.models[0]!.phase).toBe('unloading');
  });
});
