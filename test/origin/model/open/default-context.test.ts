import { describe, expect, it } from 'vitest';
import type { DeviceSettings } from '../../../../origin/model/config/device.ts';
import { defaultContext } from '../../../../origin/model/open/default-context.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Llama 3.2 1B in fp16: 4 GiB a slot. */
const NEED: Parameters<typeof defaultContext>[0] = {
  maxPositions: 131_072,
  positionBytes: 32_768,
  stateBytes: 0,
  slots: null,
  otherBytes: 3 * GIB,
  kvLimitBytes: Infinity,
};
const device = (provider: DeviceSettings['provider']) => ({ provider, deviceId: null, memoryBytes: null });
const lengthOf = (need: Partial<typeof NEED>, provider: DeviceSettings['provider'], free: number | null) =>
  defaultContext({ ...NEED, ...need }, device(provider), () => free).contextLength;

describe('a default context', () => {
  it('is at most 16,384 on the CPU, and less if eight slots do not fit into half of the memory', () => {
    expect(lengthOf({}, 'cpu', 64 * GIB)).toBe(16_384);
    expect(lengthOf({}, 'cpu', 7 * GIB)).toBe(8192);
    // 0.3 GiB hold 8 slots of 1,229 positions, and two of 4,915.
    expect(lengthOf({}, 'cpu', 3.6 * GIB)).toBe(4096);
    expect(lengthOf({ slots: 1 }, 'cpu', 64 * GIB)).toBe(131_072);
    expect(lengthOf({ maxPositions: Infinity }, 'cpu', 64 * GIB)).toBe(2048);
  });

  it('is at most 16,384 on a card, and less if 64 slots do not fit beside each other', () => {
    expect(defaultContext(NEED, device('cuda'), () => 79 * GIB)).toEqual({
      contextLength: 16_384,
      note: 'context of 16384 of 131072 positions, because few prompts are longer; CONTINUO_CONTEXT sets another',
    });
    // Nine tenths of 21 GiB hold 64 slots of 9,676 positions.
    expect(defaultContext(NEED, device('cuda'), () => 24 * GIB)).toEqual({
      contextLength: 9216,
      note: 'context of 9216 of 131072 positions, because 64 slots may take 19354 MiB; CONTINUO_CONTEXT sets another',
    });
    expect(lengthOf({ maxPositions: 2048 }, 'cuda', 24 * GIB)).toBe(2048);
  });

  it('is 4,096 as long as eight slots of it fit', () => {
    expect(lengthOf({}, 'cuda', 6 * GIB)).toBe(4096);
    // 0.9 GiB hold 8 slots of 3,686 positions.
    expect(lengthOf({}, 'cuda', 4 * GIB)).toBe(3072);
  });

  it('is what lets the operator’s number of slots fit', () => {
    expect(lengthOf({ slots: 8 }, 'cuda', 23 * GIB)).toBe(73_728);
    expect(lengthOf({ slots: 1 }, 'cuda', 23 * GIB)).toBe(131_072);
    expect(lengthOf({ slots: 200 }, 'cuda', 23 * GIB)).toBe(2048);
  });

  it('leaves room for the states of slots, and is long if positions take no memory', () => {
    // 18.9 GiB hold 64 slots of 54 MiB of states and 7,948 positions.
    expect(lengthOf({ stateBytes: 54 * MIB }, 'cuda', 24 * GIB)).toBe(7168);
    expect(lengthOf({ stateBytes: 54 * MIB, positionBytes: 0 }, 'cuda', 4 * GIB)).toBe(16_384);
  });

  it('keeps the operator’s limit on the KV cache, and has 2,048 positions at least', () => {
    expect(lengthOf({ slots: 8, kvLimitBytes: 2 * GIB }, 'cuda', 23 * GIB)).toBe(8192);
    expect(lengthOf({ kvLimitBytes: 2 * GIB }, 'cuda', 23 * GIB)).toBe(4096);
    expect(lengthOf({ kvLimitBytes: 500 * MIB }, 'cuda', 23 * GIB)).toBe(2048);
    expect(lengthOf({}, 'cuda', GIB)).toBe(2048);
  });

  it('has at most 8,192 positions on a device that does not report its memory', () => {
    expect(defaultContext(NEED, device('webgpu'), () => null).note).toBe(
      'context of 8192 of 131072 positions, because the device does not report its free memory; CONTINUO_CONTEXT sets another',
    );
    expect(lengthOf({ maxPositions: 4096 }, 'webgpu', null)).toBe(4096);
  });
});
