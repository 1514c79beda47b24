import { describe, expect, it } from 'vitest';
import type { DeviceSettings } from '../../../../origin/model/config/device.ts';
import { defaultContext } from '../../../../origin/model/open/default-context.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Llama 3.2 1B in fp16: 4 GiB a slot. */
const NEED = {
  maxPositions: 131_072,
  positionBytes: 32_768,
  slots: 8,
  otherBytes: 3 * GIB,
  kvLimitBytes: Infinity,
};
const device = (provider: DeviceSettings['provider']) => ({ provider, deviceId: null, memoryBytes: null });
const lengthOf = (need: Partial<typeof NEED>, provider: DeviceSettings['provider'], free: number | null) =>
  defaultContext({ ...NEED, ...need }, device(provider), () => free).contextLength;

describe('a default context', () => {
  it('is the model’s on the CPU, where a slot takes memory only as it grows', () => {
    expect(lengthOf({}, 'cpu', GIB)).toBe(131_072);
    expect(lengthOf({ maxPositions: Infinity }, 'cpu', GIB)).toBe(2048);
  });

  it('is what lets the slots take half of the memory that weights and runs leave on a card', () => {
    expect(defaultContext(NEED, device('cuda'), () => 23 * GIB)).toEqual({
      contextLength: 40_960,
      note: 'context of 40960 of 131072 positions, because 8 slots may take 10240 MiB of the device; CONTINUO_CONTEXT sets another',
    });
    expect(lengthOf({ slots: 1 }, 'cuda', 23 * GIB)).toBe(131_072);
    expect(defaultContext(NEED, device('cuda'), () => 79 * GIB)).toEqual({
      contextLength: 131_072,
      note: null,
    });
    expect(lengthOf({ maxPositions: 2048 }, 'cuda', 23 * GIB)).toBe(2048);
  });

  it('keeps the operator’s limit on the KV cache, and has 2,048 positions at least', () => {
    expect(lengthOf({ kvLimitBytes: 2 * GIB }, 'cuda', 23 * GIB)).toBe(8192);
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
