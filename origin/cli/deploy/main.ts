import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createProgram, runProgram, withExamples } from '@continuo/origin/terminal/program.ts';
import { processTerminal } from '@continuo/origin/terminal/terminal.ts';
import { ROOT, stateDirectory } from '../start/installation.ts';
import { type DeployOptions, deploy } from './deploy.ts';
import { wranglerIn } from './wrangler.ts';

/** Entry of `npm run deploy`: deploys the Worker to Cloudflare. */

const terminal = processTerminal();
const program = createProgram('deploy', 'Deploys the Worker to Cloudflare, step by step.', terminal)
  .option('--env <name>', 'environment of wrangler.toml; default: its top level', '')
  .option('--dry-run', 'print the plan and check the bundle; needs no account', false)
  .option('--secrets <directory>', 'secrets that it makes; default: deploy/ENV in the state directory')
  .option('--url <address>', 'address of the Worker for the last test; default: what wrangler reports');
withExamples(program, 'npm run deploy -- --env production --dry-run', 'npm run deploy -- --env production');

program.action(async (given: Omit<DeployOptions, 'secrets' | 'config'> & { secrets?: string }) => {
  const { env } = process;
  const secrets = path.resolve(
    given.secrets ?? path.join(stateDirectory(env), 'deploy', given.env || 'top-level'),
  );
  const options = { ...given, secrets, config: path.join(ROOT, 'wrangler.toml') };
  const wrangler = wranglerIn(ROOT, env);
  await deploy(options, { terminal, environment: env, wrangler, fetch, now: () => performance.now(), sleep });
});
process.exitCode = await runProgram(program, process.argv.slice(2), terminal);
