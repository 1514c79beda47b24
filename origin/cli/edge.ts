import { once } from 'node:events';
import { requireKnownVariables } from '@continuo/origin/config/config.ts';
import { CommandError, EXIT, requireOption, whole, withExamples } from '@continuo/origin/terminal/program.ts';
import type { Command } from 'commander';
import type { CliContext } from './session.ts';

/** `continuo edge`: the Worker on a host of one's own, in front of an origin that runs elsewhere. */

interface EdgeOptions {
  readonly host?: string;
  readonly port?: number;
  readonly origin: string;
  readonly state: string;
  readonly secrets: string;
}

export function addEdgeCommand(program: Command, { terminal, environment }: CliContext): void {
  const edge = program
    .command('edge')
    .description('run the Worker on this host, without Cloudflare, in front of an origin');
  requireOption(edge, '--origin <address>', 'address of the origin, for example http://origin:9100');
  requireOption(edge, '--state <directory>', 'databases: tenants, keys, usage');
  requireOption(edge, '--secrets <directory>', 'secrets; the first start makes them');
  withExamples(
    edge
      .option('--host <address>', 'listening address; default: CONTINUO_HOST, else 127.0.0.1')
      .option('--port <number>', 'listening port; default: CONTINUO_PORT, else 8787', whole(1, 65_535)),
    'continuo edge --origin http://10.0.0.8:9100 --state /var/lib/continuo --secrets /etc/continuo',
  ).action(async ({ origin, state, secrets, ...given }: EdgeOptions) => {
    const { hostSecrets } = await import('./start/host-secrets.ts');
    const { openLocalWorker } = await import('./start/local-worker.ts');
    const { lockStateDirectory } = await import('./start/state-lock.ts');
    const { readListener, workerVariablesOf } = await import('./start/settings.ts');
    if (URL.parse(origin)?.protocol !== 'http:')
      throw new CommandError(`'${origin}' is no http address.`, EXIT.usage);
    requireKnownVariables(environment);
    const address = { ...readListener(environment), ...given };
    const configured = workerVariablesOf(environment);
    // The files hold keys and what callers may ask to be repeated.
    process.umask(0o077);
    using _lock = lockStateDirectory(state, '--state');
    const vars = { ...hostSecrets(secrets), ...configured, ENVIRONMENT: 'production' };
    const { url, miniflare } = await openLocalWorker({
      ...address,
      origins: [{ name: 'origin', url: origin }],
      state,
      vars,
    });
    terminal.note(`Listening on ${url}`);
    await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
    await miniflare.dispose();
  });
}
