import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Machine } from '../../../origin/model/device/device-choice.ts';
import { bundledFolder } from '../../../origin/model/ort/ort-library.ts';
import { providersAtHand } from './providers.ts';

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'continuo-providers-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

it.runIf(process.platform === 'linux')('CUDA without a driver is absent, also where its provider is', () => {
  const folder = temporaryFolder();
  for (const name of ['shared', 'cuda']) {
    symlinkSync(
      join(bundledFolder(), 'libonnxruntime.so.1'),
      join(folder, `libonnxruntime_providers_${name}.so`),
    );
  }
  const machine: Machine = {
    platform: 'linux',
    arch: 'x64',
    cuda: { folder, map: () => null },
    adapters: () => [],
    driver: () => {
      throw new Error('is missing (libcuda.so.1)');
    },
  };
  expect(providersAtHand(machine).map(({ provider, absent }) => [provider, absent])).toEqual([
    ['cpu', null],
    ['webgpu', 'there is no Vulkan device'],
    ['cuda', 'the NVIDIA driver is missing (libcuda.so.1); check it with nvidia-smi'],
  ]);
});

it('measurements for which no provider is there fail, and their report says why', () => {
  const out = temporaryFolder();
  const args = ['test/tools/gpu/main.ts', '--providers', 'cuda', '--parts', 'rates', '--out', out];
  const { status } = spawnSync(process.execPath, args, { env: { ...process.env, ORT_CUDA_PATH: out } });
  const report = JSON.parse(readFileSync(join(out, 'report.json'), 'utf8'));
  expect([status, report.reports]).toEqual([1, []]);
  expect(report.notRun).toEqual([expect.stringMatching(/^cuda: .*CUDA/)]);
});
