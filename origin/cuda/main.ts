import { setTimeout as sleep } from 'node:timers/promises';
import { commandConnection, throughProxy } from '../hub/command-connection.ts';
import { installedCudaFolder } from '../model/ort/cuda-folder.ts';
import { CommandError, createProgram, runProgram } from '../terminal/program.ts';
import { byteSize, createProgress } from '../terminal/progress.ts';
import { processTerminal } from '../terminal/terminal.ts';
import { installWheels } from './install.ts';
import { PackageIndex } from './package-index.ts';
import { CUDA_WHEELS, CUDNN_WHEELS } from './wheels.ts';

/** `npm run cuda:install`: everything that CUDA needs except the driver. */

const terminal = processTerminal();
const progress = createProgress(terminal.stderr);

const program = createProgram(
  'cuda:install',
  "Installs ONNX Runtime's CUDA provider and NVIDIA's libraries from PyPI, then checks driver and cards.",
  terminal,
)
  .argument('[folder]', 'where to; then checks nothing')
  .option('--cudnn', 'also install cuDNN, which few models need', false)
  .addHelpText('after', '\nReads PIP_INDEX_URL, XDG_CACHE_HOME and HTTPS_PROXY.')
  .action(async (named: string | undefined, { cudnn }: { cudnn: boolean }) => {
    const folder = named ?? installedCudaFolder(process.env);
    if (folder === null) throw new CommandError('set HOME, or name a folder to install into');
    const wheels = [...(cudnn ? CUDNN_WHEELS : []), ...CUDA_WHEELS];
    const bytes = wheels.reduce((sum, { identity }) => sum + identity.size, 0);
    progress.note(`installing into ${folder}; up to ${byteSize(bytes)} to download`);
    const index = new PackageIndex({ url: process.env.PIP_INDEX_URL, ...commandConnection(progress) });
    await throughProxy(() => installWheels(wheels, { index, folder, progress, sleep }));
    if (named !== undefined) return;
    const { checkCuda, thisMachine } = await import('../model/device/device-choice.ts');
    for (const line of checkCuda(thisMachine())) terminal.print(line);
  });
process.exitCode = await runProgram(program, process.argv.slice(2), terminal);
