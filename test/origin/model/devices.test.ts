import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';
import { describe, expect, it, test } from 'vitest';
import { type DeviceSettings, requireUsedOptions } from '../../../origin/model/config/device.ts';
import { readModelConfig } from '../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { describeDecoder } from '../../../origin/model/decoder/decoder-interface.ts';
import { missingCudaLibraries } from '../../../origin/model/device/cuda-libraries.ts';
import { checkCuda, deviceFor, type Machine, onDevice } from '../../../origin/model/device/device-choice.ts';
import { neededLibraries } from '../../../origin/model/device/elf-file.ts';
import { patchDecoder } from '../../../origin/model/foreign/patch-decoder.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import type { CudaDriver } from '../../../origin/model/ort/cuda-driver.ts';
import { readGraphFile } from '../../../origin/model/ort/graph-file.ts';
import { cudaOptions, type OrtDevice } from '../../../origin/model/ort/ort-device.ts';
import { bundledFolder, openLibrary } from '../../../origin/model/ort/ort-library.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { modelOptions, temporaryDirectory } from './synthetic-runner.ts';

const AUTO: DeviceSettings = { provider: 'auto', deviceId: 1, memoryBytes: null };
const GPU = { name: 'A card', isGpu: true, minSubgroupSize: 32 };
const SOFTWARE = { name: 'llvmpipe', isGpu: false, minSubgroupSize: 8 };
const CARDS = ['Card A', 'Card B'].map((name) => ({ name, capability: [7, 5] as const }));
const DRIVER: CudaDriver = { version: 13_000, cards: CARDS, freeBytes: () => 2 ** 30 };
const ONNX_RUNTIME = join(bundledFolder(), 'libonnxruntime.so.1');
const isLinux = process.platform === 'linux';

function folder(): string {
  const made = newDirectory();
  return made;
}

/** A folder with the provider's files, played by ONNX Runtime's own library. */
function installedFolder(): string {
  const made = folder();
  for (const name of ['shared', 'cuda']) {
    symlinkSync(ONNX_RUNTIME, join(made, `libonnxruntime_providers_${name}.so`));
  }
  return made;
}

/** A provider that needs a library of CUDA, played by a copy of ONNX Runtime's library with other names. */
function cudaFolder(needed: string, version = '1.30.0'): string {
  const made = folder();
  const library = Buffer.from(readFileSync(ONNX_RUNTIME));
  library.write(needed, library.indexOf('libpthread.so.0\0'), 'latin1');
  library.write(version, library.indexOf('\x001.30.0\0') + 1, 'latin1');
  for (const name of ['shared', 'cuda'])
    writeFileSync(join(made, `libonnxruntime_providers_${name}.so`), library);
  return made;
}

const machine = (found: Partial<Machine>): Machine => ({
  platform: 'linux',
  arch: 'x64',
  cuda: { folder: '/nowhere', map: () => null },
  adapters: () => [],
  driver: () => DRIVER,
  ...found,
});

/** Opens every device but those named. */
const opener = (broken: readonly OrtDevice['provider'][] = []) => {
  const tried: OrtDevice[] = [];
  const open = async (device: OrtDevice) => {
    tried.push(device);
    if (broken.includes(device.provider)) throw new Error(`${device.provider} is broken`);
    return device.provider;
  };
  return { tried, open };
};

describe('settings', () => {
  const set = { deviceId: 0, memoryBytes: 1e9 };

  it.each(['cuda', 'auto'] as const)('device id and memory limit mean something to %s', (provider) => {
    expect(() => requireUsedOptions({ provider, ...set })).not.toThrow();
  });

  it.each(['cpu', 'webgpu'] as const)('are refused with %s', (provider) => {
    expect(() => requireUsedOptions({ provider, ...set })).toThrow(
      `a device id is set, but the provider ${provider} ignores it`,
    );
    expect(() => requireUsedOptions({ provider, ...set, deviceId: null })).toThrow(
      'a limit on device memory is set',
    );
    expect(() => requireUsedOptions({ provider, deviceId: null, memoryBytes: null })).not.toThrow();
  });

  it('reach CUDA under ONNX Runtime’s names', () => {
    expect(cudaOptions({ provider: 'cuda', deviceId: 3, memoryBytes: 2 ** 34 })).toEqual({
      device_id: '3',
      gpu_mem_limit: '17179869184',
      arena_extend_strategy: 'kSameAsRequested',
      use_tf32: '0',
      sdpa_kernel: '3',
      enable_cudnn: '0',
    });
    expect(cudaOptions({ provider: 'cuda', deviceId: 0, memoryBytes: null, cudnn: true })).toHaveProperty(
      'enable_cudnn',
      '1',
    );
    expect(cudaOptions({ provider: 'cuda', deviceId: 0, memoryBytes: null })).not.toHaveProperty(
      'gpu_mem_limit',
    );
  });
});

test('native calls have a stack of 8 MiB, synchronous and asynchronous', () => {
  openLibrary(null);
  const { sync_stack_size, async_stack_size } = koffi.config();
  expect([sync_stack_size, async_stack_size]).toEqual([2 ** 23, 2 ** 23]);
});

describe('auto', () => {
  it.runIf(isLinux)('takes CUDA on the configured card if nothing is missing', async () => {
    const { tried, open } = opener();
    const here = machine({ cuda: { folder: installedFolder(), map: () => null }, adapters: () => [GPU] });
    expect(await onDevice(AUTO, here, open)).toEqual({ opened: 'cuda', warning: null });
    expect(tried).toEqual([{ provider: 'cuda', deviceId: 1, memoryBytes: null }]);
  });

  it('takes WebGPU on a GPU if CUDA is missing', async () => {
    const { tried, open } = opener();
    const here = machine({ adapters: () => [SOFTWARE, GPU] });
    expect(await onDevice(AUTO, here, open)).toEqual({ opened: 'webgpu', warning: null });
    expect(tried).toEqual([{ provider: 'webgpu' }]);
  });

  it.each([
    { adapters: [], reason: 'there is no Vulkan device' },
    { adapters: [SOFTWARE], reason: 'llvmpipe is not a GPU' },
  ])('falls back to the CPU with one line that says why: $reason', async ({ adapters, reason }) => {
    const { opened, warning } = await onDevice(AUTO, machine({ adapters: () => adapters }), opener().open);
    expect(opened).toBe('cpu');
    expect(warning).toMatch(
      /^using the CPU; cuda: CUDA lacks libonnxruntime_providers_shared\.so: .*; webgpu: /,
    );
    expect(warning?.endsWith(reason)).toBe(true);
  });

  it('tries the next device if one exists but does not open', async () => {
    const { open } = opener(['webgpu']);
    const { opened, warning } = await onDevice(AUTO, machine({ adapters: () => [GPU] }), open);
    expect(opened).toBe('cpu');
    expect(warning).toMatch(/webgpu: webgpu is broken$/);
  });

  it('fails with the CPU’s error if the CPU does not open either', async () => {
    await expect(onDevice(AUTO, machine({}), opener(['cpu']).open)).rejects.toThrow('cpu is broken');
  });
});

describe('an explicit provider', () => {
  it('is used, or the start fails', async () => {
    const { tried, open } = opener(['webgpu']);
    const webgpu = { provider: 'webgpu', deviceId: null, memoryBytes: null } as const;
    await expect(onDevice(webgpu, machine({}), open)).rejects.toThrow('webgpu is broken');
    expect(tried).toHaveLength(1);
  });

  it('is refused on platforms without its libraries', async () => {
    const cuda = { provider: 'cuda', deviceId: null, memoryBytes: null } as const;
    const { open } = opener();
    await expect(onDevice(cuda, machine({ platform: 'darwin', arch: 'arm64' }), open)).rejects.toThrow(
      'the CUDA provider is for Linux on x64, not for darwin on arm64',
    );
  });
});

describe.runIf(isLinux)('missing CUDA libraries are named one by one, each with its package', () => {
  it('the provider’s own files', () => {
    const made = folder();
    expect(missingCudaLibraries({ folder: made, map: () => null })).toEqual([
      `libonnxruntime_providers_shared.so: not in ${made}`,
      `libonnxruntime_providers_cuda.so: not in ${made}`,
    ]);
  });

  it('every library that the provider needs and the loader does not find', () => {
    const map = (file: string) =>
      file.startsWith('libstdc++') ? `${file}: cannot open shared object file` : null;
    expect(missingCudaLibraries({ folder: installedFolder(), map })).toEqual([
      'libstdc++.so.6 (the system): cannot open shared object file',
    ]);
  });

  it('a provider file that is not a library', () => {
    const made = folder();
    for (const name of ['shared', 'cuda']) {
      writeFileSync(join(made, `libonnxruntime_providers_${name}.so`), 'not found\n'.repeat(20));
    }
    expect(missingCudaLibraries({ folder: made, map: () => null })).toEqual([
      'libonnxruntime_providers_cuda.so: is not a shared library of this platform',
    ]);
  });

  it('a provider of another ONNX Runtime, with both versions', () => {
    const made = cudaFolder('libcudart.so.13', '1.29.0');
    expect(missingCudaLibraries({ folder: made, map: () => null })).toEqual([
      `${join(made, 'libonnxruntime_providers_cuda.so')} of ONNX Runtime 1.30.0: it is of 1.29.0`,
    ]);
  });

  it('a library of another major version, with the version that is there', () => {
    const map = (file: string) => (file === 'libcudart.so.13' ? `${file}: cannot open` : null);
    expect(missingCudaLibraries({ folder: cudaFolder('libcudart.so.13'), map })).toEqual([
      'libcudart.so.13 (the CUDA runtime 13): cannot open; libcudart.so.12 is there',
    ]);
  });

  it('but not the driver, which is asked itself', () => {
    const map = (file: string) => (file.startsWith('libcuda.so') ? `${file}: cannot open` : null);
    expect(missingCudaLibraries({ folder: cudaFolder('libcuda.so.1\0\0'), map })).toEqual([]);
  });

  it('libraries beside the provider take precedence', () => {
    const made = installedFolder();
    writeFileSync(join(made, 'libm.so.6'), '');
    const asked: string[] = [];
    const map = (file: string) => {
      asked.push(file);
      return null;
    };
    missingCudaLibraries({ folder: made, map });
    expect(asked).toContain(join(made, 'libm.so.6'));
    expect(asked).toContain('libc.so.6');
  });

  it('matches the file’s dynamic section', () => {
    expect(neededLibraries(ONNX_RUNTIME)).toEqual(expect.arrayContaining(['libstdc++.so.6', 'libc.so.6']));
  });
});

describe.runIf(isLinux)('a CUDA card that cannot be used is refused in one line with the next step', () => {
  const settings = { provider: 'cuda', deviceId: 2, memoryBytes: null } as const;
  const opened = (driver: Machine['driver'], deviceId: number) => {
    const here = machine({ cuda: { folder: cudaFolder('libcudart.so.13'), map: () => null }, driver });
    return onDevice({ ...settings, deviceId }, here, opener().open);
  };
  it('a device id that does not exist', async () => {
    await expect(opened(() => DRIVER, 2)).rejects.toThrow(
      'CUDA card 2 does not exist; set CONTINUO_DEVICE_ID to one of: 0 (Card A), 1 (Card B)',
    );
    expect(await opened(() => DRIVER, 1)).toMatchObject({ opened: 'cuda' });
  });

  it('a driver that is too old for the provider', async () => {
    await expect(opened(() => ({ ...DRIVER, version: 12_040 }), 0)).rejects.toThrow(
      'the NVIDIA driver supports CUDA 12.4, but the CUDA provider needs 13; update the driver, then check it with nvidia-smi',
    );
  });

  it('a card that the CUDA of the provider no longer supports', async () => {
    const cards = [{ name: 'Tesla V100', capability: [7, 0] as const }];
    await expect(opened(() => ({ ...DRIVER, cards }), 0)).rejects.toThrow(
      'Tesla V100 has compute capability 7.0, but CUDA 13 begins at 7.5 (Turing); use the provider webgpu or cpu',
    );
  });

  it('a machine without a card', async () => {
    await expect(opened(() => ({ ...DRIVER, cards: [] }), 0)).rejects.toThrow(
      'the NVIDIA driver finds no CUDA card; check it with nvidia-smi -L and CUDA_VISIBLE_DEVICES',
    );
  });

  it('missing libraries', async () => {
    const here = machine({});
    await expect(onDevice({ ...settings, deviceId: 0 }, here, opener().open)).rejects.toThrow(
      /^CUDA lacks libonnxruntime_providers_shared\.so: not in \/nowhere, .*; run continuo cuda-install$/,
    );
  });

  it('and a card that can be used is described with its driver and provider', () => {
    const made = cudaFolder('libcudart.so.13');
    const here = machine({ cuda: { folder: made, map: () => null }, driver: () => DRIVER });
    expect(checkCuda(here)).toEqual([
      `CUDA provider in ${made}, for CUDA 13`,
      'NVIDIA driver for CUDA 13.0 with card 0 (Card A), card 1 (Card B)',
      'CUDA can be used: CONTINUO_PROVIDER=cuda',
    ]);
  });

  it('a missing driver', async () => {
    const driver = () => {
      throw new Error('is missing (libcuda.so.1)');
    };
    await expect(opened(driver, 0)).rejects.toThrow(
      'the NVIDIA driver is missing (libcuda.so.1); check it with nvidia-smi',
    );
  });
});

describe('cuDNN', () => {
  const cuda = { provider: 'cuda', deviceId: 0, memoryBytes: null } as const;
  const here = (map: (file: string) => string | null) => machine({ cuda: { folder: '/nowhere', map } });
  const absent = here((file) => `${file}: cannot open shared object file`);
  const graphOf = (model: Partial<SyntheticModel>, patched: boolean) => {
    const made = temporaryDirectory();
    writeSyntheticModel(made, model);
    const file = readGraphFile(made, 'model.onnx');
    const decoder = describeDecoder(file.graph, readModelConfig(textsOf(made)));
    return patched ? patchDecoder(file, decoder).graph : file.graph;
  };

  it.each<Partial<SyntheticModel>>([
    {},
    { quantization: 'q4' },
    { precision: 'float16', softCap: 2 },
    { shortRope: 40 },
  ])('is not needed by a decoder that is fed lengths instead of a mask: %o', (model) => {
    expect(deviceFor(graphOf(model, true), cuda, absent)).toEqual(cuda);
  });

  it('is checked by name if an operator of the graph needs it', () => {
    const graph = graphOf({}, false);
    expect(() => deviceFor(graph, cuda, absent)).toThrow(
      'the operator ReduceSum needs cuDNN on CUDA: libcudnn.so.9 (cuDNN 9): cannot open shared object file; run continuo cuda-install --cudnn',
    );
    expect(
      deviceFor(
        graph,
        cuda,
        here(() => null),
      ),
    ).toEqual({ ...cuda, cudnn: true });
    expect(deviceFor(graph, { provider: 'webgpu' }, absent)).toEqual({ provider: 'webgpu' });
  });
});

it.each([
  { numbers: { precision: 'bfloat16' }, type: 'bfloat16' },
  { numbers: { precision: 'float16', kv: 'float8e4m3fn' }, type: 'float8e4m3fn' },
] as const)('a KV cache in $type is refused on the CPU with what can serve it', async ({ numbers, type }) => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, numbers);
  await expect(openModel(modelOptions(directory))).rejects.toThrow(
    `model.onnx has KV in ${type}, which cpu does not support; set CONTINUO_PROVIDER=cuda, or build another precision`,
  );
});

describe('a decoder without GroupQueryAttention, whose KV cache cannot stay on a device', () => {
  const directory = () => {
    const made = temporaryDirectory();
    writeSyntheticModel(made, { attention: 'concatenated' });
    return made;
  };

  it('is refused by name on a device', async () => {
    const device = { provider: 'webgpu', deviceId: null, memoryBytes: null } as const;
    await expect(openModel(modelOptions(directory(), { device }))).rejects.toThrow(
      'model.onnx has no GroupQueryAttention and runs only on the provider cpu',
    );
  });

  it('runs on the CPU with auto, with a warning', async () => {
    const { runner, summary, warning } = await openModel(modelOptions(directory(), { device: AUTO }));
    runner.dispose();
    expect(summary).not.toContain(' on ');
    expect(warning).toMatch(/^using the CPU; cuda: .*; webgpu: /);
  });
});
