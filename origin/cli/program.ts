import { CUDA_INSTALL, installsCuda } from '@continuo/origin/cuda/cuda-command.ts';
import { addModelCommands } from '@continuo/origin/hub/model-commands.ts';
import { createProgram, withExamples } from '@continuo/origin/terminal/program.ts';
import type { Command } from 'commander';
import { addBatchCommands } from './batch.ts';
import { addBenchCommand } from './bench.ts';
import { addKeyCommands, addPlanCommands, addTenantCommands } from './commands.ts';
import { addCompleteCommand } from './complete.ts';
import { addDoctorCommand } from './doctor.ts';
import { addEdgeCommand } from './edge.ts';
import { addCreditCommands, addPriceCommands } from './money-commands.ts';
import manifest from './package.json' with { type: 'json' };
import { addOriginCommand, addServeCommand } from './serve.ts';
import { type CliContext, sessionOpener } from './session.ts';
import { addUpstreamCommands } from './upstream-commands.ts';
import { addAuditCommand, addUsageCommand } from './usage-commands.ts';

/** Creates the tree of all commands. */
export function createContinuo(context: CliContext): Command {
  const { terminal, environment } = context;
  const program = createProgram('continuo', 'Completes texts and manages a Continuo server.', terminal)
    .version(manifest.version, '--version', 'print the version')
    .option('--url <address>', 'server; default: CONTINUO_URL, else the local one')
    .option(
      '--key-file <path>',
      'file with the API key; default: CONTINUO_API_KEY, or CONTINUO_ADMIN_KEY for the admin API, else the development key',
    )
    .option('--json', 'print JSON instead of text and tables', false);
  const asCaller = sessionOpener(program, context, 'caller');
  const asAdmin = sessionOpener(program, context, 'admin');
  addServeCommand(program, context);
  addOriginCommand(program, context);
  addEdgeCommand(program, context);
  addCompleteCommand(program, asCaller);
  addBatchCommands(program, asCaller);
  addModelsCommand(program, asCaller);
  addTenantCommands(program, asAdmin);
  addKeyCommands(program, asAdmin);
  addPlanCommands(program, asAdmin);
  addUsageCommand(program, asAdmin);
  addPriceCommands(program, asAdmin);
  addCreditCommands(program, asAdmin);
  addAuditCommand(program, asAdmin);
  addUpstreamCommands(program, asAdmin);
  const model = program.command('model').description('fetch, list and check models on this machine');
  addModelCommands(model, program, terminal, environment);
  installsCuda(program.command('cuda-install').description(CUDA_INSTALL), terminal, environment);
  addBenchCommand(program, asCaller, () => performance.now());
  addDoctorCommand(program, context);
  return program;
}

function addModelsCommand(program: Command, open: ReturnType<typeof sessionOpener>): void {
  const models = program.command('models').description('list the models that the server offers to the key');
  withExamples(models, 'continuo models', 'continuo models --json').action(() =>
    open().list('/v1/models', ['id', 'root', 'max_model_len', 'state']),
  );
}
