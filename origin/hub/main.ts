import { createProgram, runProgram } from '../terminal/program.ts';
import { processTerminal } from '../terminal/terminal.ts';
import { addModelCommands } from './model-commands.ts';

/** The commands of `continuo model` for the origin's container image, which has no `continuo`. */

const terminal = processTerminal();
const program = createProgram('model', 'Fetches and checks models.', terminal).option(
  '--json',
  'print JSON instead of tables',
  false,
);
addModelCommands(program, program, terminal, process.env);
process.exitCode = await runProgram(program, process.argv.slice(2), terminal);
