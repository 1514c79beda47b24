import { rmSync } from 'node:fs';
import koffi from 'koffi';
import { expect, it, onTestFinished, vi } from 'vitest';
import { faultKind } from '../../../../../origin/model/model-runner.ts';
import { openCudaDriver } from '../../../../../origin/model/ort/cuda-driver.ts';
import { openOrtApi } from '../../../../../origin/model/ort/ort-capi.ts';
import { openLibrary } from '../../../../../origin/model/ort/ort-library.ts';
import { CudaKvCopier } from '../../../../../origin/model/runner/device/cuda-kv-copier.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../../../support/fake-cuda-driver.ts';
import { writeSyntheticModel } from '../../../../support/synthetic/synthetic-model.ts';
import { driverRunner } from '../../../../tools/gpu/runners.ts';
import { prefillPrompt, randomTokens, temporaryDirectory } from '../../synthetic-runner.ts';

/** Opens a runner that copies with a driver made for the test. */
function open() {
  const { folder, file } = buildFakeCudaDriver();
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const library = openLibrary(file);
  const live: () => number = library.func('live', 'int', []);
  const waits: () => number = library.func('waits_for_all', 'int', []);
  const failWith: (error: number) => void = library.func('fail_with', 'void', ['int']);
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  const runner = driverRunner(directory, { slots: 2, prefillChunk: 32 }, file);
  return { runner, live, waits, failWith };
}

it.runIf(hasCompiler)('context, stream and page-locked memory are given back with the runner', async () => {
  const { runner, live } = open();
  await prefillPrompt(runner, 0, randomTokens(40, 1));
  const bytes = new Uint8Array(40 * runner.kvBytes.positionBytes);
  runner.kvBytes.read(0, 0, 40, bytes);
  // Two modules, contexts and streams, three events, three buffers, of KV, inputs and draws, and the logits.
  // Prompts that begin behind a decode run have two buffers more.
  expect(live()).toBe(15);
  runner.dispose();
  expect(live()).toBe(0);
});

it.runIf(hasCompiler)('decode steps and copies of KV wait for no other engine of the card', () => {
  const { runner, waits } = open();
  onTestFinished(() => runner.dispose());
  const before = waits();
  const [tokens, positions] = [Int32Array.of(1, 2), Int32Array.of(0, 0)];
  void runner.decode({ firstSlot: 0, rows: 2, tokens, positions });
  void runner.decode({ firstSlot: 0, rows: 2, tokens, positions, coldness: [1, null] });
  runner.sparse!.complete(
    runner.decode({ firstSlot: 1, rows: 1, tokens, positions, coldness: [1] }) as Float32Array,
  );
  runner.copy(0, 1, 8);
  expect(waits() - before).toBe(0);
});

it.runIf(hasCompiler)('page-locked memory stays until its owner frees it, whatever else is allocated', () => {
  const { folder, file } = buildFakeCudaDriver();
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const library = openLibrary(file);
  const live: () => number = library.func('live', 'int', []);
  const copies = openCudaDriver(file).copies(0);
  const [small, large] = [copies.hostMemory(16), copies.hostMemory(64)];
  small.bytes.fill(7);
  const card = new Uint8Array(16);
  const to = { where: 'device', address: koffi.address(card), pitch: 16 } as const;
  copies.perform((work) => work.copy({ where: 'host', address: small.address, pitch: 16 }, to, 16, 1));
  expect([...card]).toEqual(Array(16).fill(7));
  // A context, a stream and both memories.
  expect(live()).toBe(4);
  large.free();
  large.free();
  expect(live()).toBe(3);
  copies.dispose();
  expect(live()).toBe(0);
});

it.runIf(hasCompiler)('the driver fills a new KV cache with zeros, without a byte from main memory', () => {
  const { folder, file } = buildFakeCudaDriver();
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: 64 });
  const real = openOrtApi();
  const dirty = (allocator: bigint | null, bytes: number) => {
    const address = real.AllocatorAlloc(allocator, bytes);
    new Uint8Array(koffi.view(address, bytes)).fill(0xff);
    return address;
  };
  const write = vi.spyOn(CudaKvCopier.prototype, 'write');
  onTestFinished(() => write.mockRestore());
  const options = { slots: 3, prefillChunk: 32 };
  const runner = driverRunner(directory, options, file, { ...real, AllocatorAlloc: dirty }, undefined, false);
  onTestFinished(() => runner.dispose());
  for (const slot of [0, 2]) {
    const bytes = new Uint8Array(64 * runner.kvBytes.positionBytes).fill(1);
    runner.kvBytes.read(slot, 0, 64, bytes);
    expect(bytes.every((byte) => byte === 0)).toBe(true);
  }
  expect(write).not.toHaveBeenCalled();
});

it.runIf(hasCompiler)('a failed copy has the kind of its error number, and the next one is made', () => {
  const { runner, failWith } = open();
  onTestFinished(() => runner.dispose());
  const kindOf = (error: number) => {
    failWith(error);
    try {
      runner.copy(0, 1, 8);
    } catch (thrown) {
      expect((thrown as Error).message).toBe(
        `the NVIDIA driver refuses cuStreamSynchronize with error ${error}: as the test demands`,
      );
      return faultKind(thrown);
    }
    return null;
  };
  expect([700, 2, 1, 0].map(kindOf)).toEqual(['device-lost', 'out-of-memory', 'other', null]);
});
