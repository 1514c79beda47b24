import { readModelSettings } from '@continuo/origin/config/config.ts';
import type { Environment } from '@continuo/origin/config/environment.ts';
import type { ModelSettings } from '@continuo/origin/config/model-settings.ts';
import { hasDeviceOptions } from '@continuo/origin/model/config/device.ts';
import { type Machine, onDevice, requireCuda } from '@continuo/origin/model/device/device-choice.ts';
import type { FaultyModel, InspectedModel } from '@continuo/origin/serving/inspect-model.ts';
import { inspectModels } from '@continuo/origin/serving/inspect-models.ts';
import { type ModelSet, readModels } from '@continuo/origin/serving/models-file.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** Checks of the models and the devices that the environment configures. */

/** @param machine this machine; @param hasCard whether it has an NVIDIA card */
export async function checkModels(
  environment: Environment,
  machine: Machine,
  hasCard: boolean,
): Promise<Finding[]> {
  let configured: ModelSet;
  try {
    configured = readModels(readModelSettings(environment));
  } catch (error) {
    return [fail('Models', errorMessage(error), 'Correct it; docs/configuration.md lists all variables.')];
  }
  const { models, limits } = configured;
  const inspection = inspectModels(
    models.filter(({ source }) => source === null),
    limits,
  );
  const devices = new Map(models.map(({ engine }) => [JSON.stringify(engine.device), engine.device]));
  return [
    ...models.flatMap(describeSource),
    ...inspection.models.map(describe),
    ...inspection.faulty.map(describeFault),
    ...(await Promise.all([...devices.values()].map((device) => checkProvider(device, machine)))),
    checkCuda([...devices.values()], machine, hasCard),
  ];
}

const nameOf = ({ name }: ModelSettings): string => `Model ${name}`;

const describe = ({ settings, slots, contextLength }: InspectedModel): Finding =>
  ok(nameOf(settings), `${settings.engine.directory}, ${slots} slots of ${contextLength} positions`);

const describeSource = (settings: ModelSettings): Finding[] =>
  settings.source === null
    ? []
    : [ok(nameOf(settings), `${settings.source.model}, fetched and built when the origin starts`)];

const describeFault = ({ settings, reason }: FaultyModel): Finding =>
  fail(nameOf(settings), reason, 'Correct it, or fetch a model with continuo model pull.');

type Device = ModelSettings['engine']['device'];

async function checkProvider(device: Device, machine: Machine): Promise<Finding> {
  const name = 'Provider';
  const { provider } = device;
  // Another check lists its libraries.
  if (provider === 'cuda') return ok(name, provider);
  const { opened, warning } = await onDevice(device, machine, ({ provider: chosen }) =>
    Promise.resolve(chosen),
  );
  if (warning === null) return ok(name, provider === opened ? provider : `${provider} chooses ${opened}`);
  return warn(name, `${provider}: ${warning}`, 'Set CONTINUO_PROVIDER=cpu if the CPU is what you want.');
}

/** What CUDA lacks is a failure only if a model needs it. */
function checkCuda(devices: readonly Device[], machine: Machine, hasCard: boolean): Finding {
  const name = 'CUDA';
  const isNeeded = devices.some(({ provider }) => provider === 'cuda');
  if (!isNeeded && !hasCard) return ok(name, 'not needed: no model uses cuda, and there is no NVIDIA card');
  const users = devices.filter(({ provider }) => hasDeviceOptions(provider));
  try {
    for (const { deviceId } of users.length === 0 ? [{ deviceId: 0 }] : users)
      requireCuda(deviceId ?? 0, machine);
  } catch (error) {
    const advice = 'Do this, then run continuo doctor again; see docs/devices.md.';
    return (isNeeded ? fail : warn)(name, errorMessage(error), advice);
  }
  return users.length > 0
    ? ok(name, 'complete')
    : warn(name, 'complete, but no model uses it', 'Set CONTINUO_PROVIDER=cuda to use the NVIDIA card.');
}
