import { createProgram, runProgram } from '../terminal/program.ts';
import { processTerminal } from '../terminal/terminal.ts';
import { CUDA_INSTALL, installsCuda } from './cuda-command.ts';

/** `continuo cuda-install` for the origin's container image, which has no `continuo`. */

const terminal = processTerminal();
const program = createProgram('cuda-install', CUDA_INSTALL, terminal);
installsCuda(program, terminal, process.env);
process.exitCode = await runProgram(program, process.argv.slice(2), terminal);
