import { runProgram } from '@continuo/origin/terminal/program.ts';
import { processTerminal } from '@continuo/origin/terminal/terminal.ts';
import { bypassProxyForLocal } from './access.ts';
import { createContinuo } from './program.ts';

/** The command line `continuo`. */

bypassProxyForLocal(process.env);
const terminal = processTerminal();
const program = createContinuo({ terminal, environment: process.env, fetch });
process.exitCode = await runProgram(program, process.argv.slice(2), terminal);
