import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Environment } from '../config/environment.ts';
import { commandConnection, throughProxy } from '../hub/fetch/command-connection.ts';
import { installedCudaFolder } from '../model/ort/cuda-folder.ts';
import { CommandError } from '../terminal/program.ts';
import { byteSize, createProgress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { installWheels } from './install.ts';
import { PackageIndex } from './package-index.ts';
import { CUDA_WHEELS, CUDNN_WHEELS } from './wheels.ts';

export const CUDA_INSTALL =
  "install ONNX Runtime's CUDA provider and NVIDIA's libraries from PyPI, then check driver and cards";

/** Makes a command install everything that CUDA needs except the driver. */
export function installsCuda(command: Command, terminal: Terminal, environment: Environment): void {
  command
    .argument('[folder]', 'where to; then checks nothing')
    .option('--cudnn', 'also install cuDNN, which few models need', false)
    .addHelpText('after', '\nReads PIP_INDEX_URL, XDG_CACHE_HOME and HTTPS_PROXY.')
    .action(async (named: string | undefined, { cudnn }: { cudnn: boolean }) => {
      const progress = createProgress(terminal.stderr);
      const folder = named ?? installedCudaFolder(environment);
      if (folder === null) throw new CommandError('set HOME, or name a folder to install into');
      const wheels = [...(cudnn ? CUDNN_WHEELS : []), ...CUDA_WHEELS];
      const bytes = wheels.reduce((sum, { size }) => sum + size, 0);
      progress.note(`installing into ${folder}; up to ${byteSize(bytes)} to download`);
      const index = new PackageIndex({ url: environment.PIP_INDEX_URL, ...commandConnection(progress) });
      await throughProxy(() => installWheels(wheels, { index, folder, progress, sleep }));
      if (named !== undefined) return;
      const { checkCuda, thisMachine } = await import('../model/device/device-choice.ts');
      for (const line of checkCuda(thisMachine())) terminal.print(line);
    });
}
