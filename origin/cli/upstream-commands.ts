import { readJsonFile } from '@continuo/origin/config/named-file.ts';
import { CommandError, EXIT, withExamples } from '@continuo/origin/terminal/program.ts';
import type { Command } from 'commander';
import * as z from 'zod';
import { given, pathTo } from './options.ts';
import type { OpenSession } from './session.ts';

interface UpstreamOptions {
  readonly address?: string;
  readonly secret?: string;
  readonly binding?: string;
  readonly file?: string;
}

const fields = z.record(z.string(), z.unknown());

/** Reads an upstream. The command names it, not the file. @throws CommandError */
function upstreamIn(file: string): Record<string, unknown> {
  const { success, data } = fields.safeParse(readJsonFile(file));
  if (!success) throw new CommandError(`${file} is not a JSON object.`);
  const { name, ...upstream } = data;
  return upstream;
}

function upstreamOf({ file, address: url, secret, binding }: UpstreamOptions): Record<string, unknown> {
  if (file === undefined && url === undefined)
    throw new CommandError('Name the address with --address, or a file with --file.', EXIT.usage);
  return {
    kind: 'origin',
    ...(file === undefined ? {} : upstreamIn(file)),
    ...given({ url, secret, binding }),
  };
}

export function addUpstreamCommands(program: Command, open: OpenSession): void {
  const upstreams = program
    .command('upstreams')
    .description('manage the servers of models that the Worker sends requests to');
  const list = upstreams
    .command('list')
    .description('list the upstreams, with those that cannot be used and why');
  withExamples(list, 'continuo upstreams list').action(() =>
    open().list('/admin/v1/upstreams', ['id', 'source', 'fault', 'config']),
  );
  const set = upstreams
    .command('set <name>')
    .description('add or replace an upstream; known everywhere within one minute')
    .option('--address <url>', 'address of an origin')
    .option('--secret <name>', 'secret of the Worker that the origin shares; default: ORIGIN_SECRET')
    .option('--binding <name>', 'binding of the Worker that carries the requests; default: none')
    .option(
      '--file <path>',
      'any upstream as JSON, as in UPSTREAMS; the options above take the place of its fields',
    );
  withExamples(
    set,
    'continuo upstreams set fra-2 --address https://fra-2.example.com',
    'continuo upstreams set vllm --file vllm.json',
  ).action((name: string, options: UpstreamOptions) =>
    open().request('PUT', pathTo('upstreams', name), upstreamOf(options)),
  );
  const remove = upstreams
    .command('remove <name>')
    .description('remove an upstream: new requests go elsewhere, running ones end there');
  withExamples(remove, 'continuo upstreams remove fra-1').action((name: string) =>
    open().request('DELETE', pathTo('upstreams', name)),
  );
}
