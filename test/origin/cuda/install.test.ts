import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type InstallContext, installWheels } from '../../../origin/cuda/install.ts';
import { PackageIndex } from '../../../origin/cuda/package-index.ts';
import { CUDA_WHEELS, CUDNN_WHEELS, type Wheel } from '../../../origin/cuda/wheels.ts';
import { HubError } from '../../../origin/hub/fetch/hub-error.ts';
import {
  CUDA_PROVIDER,
  cudaFolder,
  installedCudaFolder,
  ONNX_RUNTIME_VERSION,
} from '../../../origin/model/ort/cuda-folder.ts';
import originPackage from '../../../origin/package.json' with { type: 'json' };
import { forEachTest } from '../../support/for-tests.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { randomFrom } from '../../support/random.ts';
import { FakeIndex, wheelOf } from './fake-index.ts';

const index = forEachTest(() => FakeIndex.start());
const random = randomFrom(24);
const bytes = (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
const LIBRARIES = { 'libcublasLt.so.13': bytes(80_000), 'libcublas.so.13': bytes(20_000) };
const MADE = wheelOf('nvidia-cublas', LIBRARIES);

function context(folder: string, url = index.url): InstallContext {
  const sleep = () => Promise.resolve();
  const retries = { maxAttempts: 3, sleep, random: () => 0, onRetry: () => undefined };
  return {
    index: new PackageIndex({ url, fetch, retries, stallMs: 10_000 }),
    folder,
    progress: { start: () => ({ update() {}, stop() {} }), note() {} },
    sleep,
  };
}

async function faultOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error('it succeeded'),
    (thrown: Error) => thrown,
  );
  expect(error).toBeInstanceOf(HubError);
  expect(error.message).not.toContain('\n');
  return error.message;
}

const contentsOf = (folder: string) =>
  Object.fromEntries(
    readdirSync(folder)
      .filter((name) => name.startsWith('lib'))
      .map((name) => [name, readFileSync(path.join(folder, name))]),
  );

describe('cuda:install', () => {
  it('unpacks the wanted libraries of a wheel, deletes the wheel and does nothing the second time', async () => {
    const wheel = index.offer(MADE);
    const folder = path.join(newDirectory(), 'new', 'cuda');
    await installWheels([wheel], context(folder));
    expect(contentsOf(folder)).toEqual(LIBRARIES);
    expect(readdirSync(folder).filter((name) => name.includes('.whl'))).toEqual([]);
    index.seen.length = 0;
    await installWheels([wheel], context(folder));
    expect(index.seen).toEqual([]);
  });

  it('repairs an installation that lacks a library, and replaces those of another version', async () => {
    const wheel = index.offer(MADE);
    const folder = newDirectory();
    await installWheels([wheel], context(folder));
    const newer = wheelOf('nvidia-cublas', { ...LIBRARIES, 'libcublas.so.13': bytes(100) });
    const renamed = { ...newer.wheel, file: newer.wheel.file.replace('13.0', '13.1') };
    await installWheels([index.offer({ ...newer, wheel: renamed })], context(folder));
    expect(statSync(path.join(folder, 'libcublas.so.13')).size).toBe(100);
  });

  it('resumes a download after a lost connection, and what an earlier run left', async () => {
    const wheel = index.offer(MADE);
    const folder = newDirectory();
    writeFileSync(path.join(folder, `${wheel.file}.incomplete`), MADE.content.subarray(0, 30_000));
    index.cuts.push(0);
    await installWheels([wheel], context(folder));
    expect(contentsOf(folder)).toEqual(LIBRARIES);
    const file = `/files/${wheel.file}`;
    expect(index.seen).toEqual(['/simple/nvidia-cublas/', `${file} from 30000`, `${file} from 30000`]);
  });

  it('refuses a wheel with a wrong checksum, keeps nothing of it and succeeds when the index is right', async () => {
    const wheel = index.offer(MADE);
    const damaged = Buffer.from(MADE.content);
    damaged[5000]! ^= 1;
    index.files.set(wheel.file, damaged);
    const folder = newDirectory();
    expect(await faultOf(installWheels([wheel], context(folder)))).toBe(
      `${wheel.file}: wrong checksum; the download was deleted`,
    );
    expect(contentsOf(folder)).toEqual({});
    expect(readdirSync(folder).filter((name) => name.includes('.whl'))).toEqual([]);
    index.offer(MADE);
    await installWheels([wheel], context(folder));
    expect(contentsOf(folder)).toEqual(LIBRARIES);
  });

  it('names a file that the index lacks, an index that answers 404, and an address that is none', async () => {
    const { wheel } = MADE;
    const folder = newDirectory();
    const { host } = new URL(index.url);
    expect(await faultOf(installWheels([wheel], context(folder)))).toBe(`${host} has no ${wheel.file}`);
    const elsewhere = context(folder, `http://${host}/elsewhere`);
    expect(await faultOf(installWheels([wheel], elsewhere))).toBe(`${host} answered 404 for ${wheel.file}`);
    for (const url of ['pypi', 'ftp://host/simple', 'https://user:password@host/simple'])
      expect(() => context(folder, url)).toThrow('PIP_INDEX_URL must be an http or https address');
  });

  it('names a wheel that is no archive, is cut off, or lacks a library', async () => {
    const folder = newDirectory();
    const installed = async (content: Buffer, libraries: readonly string[]) => {
      const wheel: Wheel = { ...MADE.wheel, libraries };
      writeFileSync(path.join(folder, wheel.file), content);
      return await faultOf(installWheels([wheel], context(folder)));
    };
    const { file, libraries } = MADE.wheel;
    const invalid = `${file} is not a valid ZIP archive: `;
    expect(await installed(Buffer.from('no archive'), libraries)).toContain(invalid);
    expect(await installed(MADE.content, ['libnvblas.so.13'])).toBe(
      `${file} does not contain libnvblas.so.13`,
    );
    const end = MADE.content.subarray(-22);
    expect(await installed(end, libraries)).toContain(invalid);
    const headless = Buffer.from(MADE.content).fill(0, 0, 30);
    expect(await installed(headless, ['libother.so'])).toContain(invalid);
  });
});

describe('the folder of the CUDA provider', () => {
  it('is ORT_CUDA_PATH, else the installed one once it has the provider, else ONNX Runtime’s own', () => {
    const home = newDirectory();
    const installed = installedCudaFolder({ HOME: home })!;
    expect(installed).toBe(path.join(home, '.cache', 'continuo', `cuda-${ONNX_RUNTIME_VERSION}`));
    expect(installedCudaFolder({ HOME: home, XDG_CACHE_HOME: '/cache' })).toMatch(
      /^\/cache\/continuo\/cuda-/,
    );
    expect(installedCudaFolder({})).toBeNull();
    expect(cudaFolder({ HOME: home })).toBeUndefined();
  });

  it('counts an installation only when it is complete: the provider comes last', async () => {
    const home = newDirectory();
    const folder = installedCudaFolder({ HOME: home })!;
    const provider = wheelOf('onnxruntime-gpu', { [CUDA_PROVIDER]: bytes(1000) });
    const wheels = [index.offer(MADE), provider.wheel];
    await faultOf(installWheels(wheels, context(folder)));
    expect(contentsOf(folder)).toEqual(LIBRARIES);
    expect(cudaFolder({ HOME: home })).toBeUndefined();
    index.offer(provider);
    await installWheels(wheels, context(folder));
    expect(cudaFolder({ HOME: home })).toBe(folder);
    expect(cudaFolder({ HOME: home, ORT_CUDA_PATH: '/own' })).toBe('/own');
    expect(CUDA_WHEELS.at(-1)?.libraries.at(-1)).toBe(CUDA_PROVIDER);
  });
});

describe('the pinned wheels', () => {
  it('hold the provider of the installed ONNX Runtime', () => {
    expect(originPackage.dependencies['onnxruntime-node']).toBe(ONNX_RUNTIME_VERSION);
    expect(CUDA_WHEELS.at(-1)?.file).toContain(`onnxruntime_gpu-${ONNX_RUNTIME_VERSION}-`);
  });

  it('are for Linux on x64, with distinct libraries', () => {
    const wheels = [...CUDA_WHEELS, ...CUDNN_WHEELS];
    for (const { file, checksum } of wheels) {
      expect(file).toMatch(/manylinux\w*_x86_64\.whl$/);
      expect(checksum).toMatch(/^[0-9a-f]{64}$/);
    }
    const libraries = wheels.flatMap((wheel) => wheel.libraries);
    expect(new Set(libraries).size).toBe(libraries.length);
  });
});

it('the command tells where it installs and ends with one line if it cannot', async () => {
  const folder = path.join(newDirectory(), 'cuda');
  const main = path.resolve(import.meta.dirname, '../../../origin/cuda/main.ts');
  const env = { ...process.env, PIP_INDEX_URL: index.url };
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) =>
    execFile(process.execPath, [main, folder], { env }, (error, _stdout, lines) =>
      resolve({ code: error?.code, stderr: lines }),
    ),
  );
  expect(code).toBe(1);
  expect(stderr.split('\n')).toEqual([
    `installing into ${folder}; up to 732 MB to download`,
    expect.stringMatching(/: 127\.0\.0\.1:\d+ has no nvidia_cuda_runtime-13\.0\.96-\S+\.whl$/),
    '',
  ]);
  expect(existsSync(path.join(folder, CUDA_PROVIDER))).toBe(false);
});
