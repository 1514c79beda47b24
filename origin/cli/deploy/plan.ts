import type { WorkerEnvironment } from '../worker-configuration.ts';

/** The commands of a deployment, in the order that leaves the running Worker working at any time. */

export interface Plan {
  /** Bundles the Worker and checks it. Needs no account. */
  readonly check: readonly string[];
  readonly listDatabases: readonly string[];
  /** One for each database that has no id in the configuration. */
  readonly createDatabases: readonly { readonly name: string; readonly words: readonly string[] }[];
  readonly listSecrets: readonly string[];
  readonly secrets: readonly string[];
  /** Migrations only add, so the Worker that still runs ignores what is new. */
  readonly migrate: readonly (readonly string[])[];
  /** Also makes the bucket and the Durable Objects. */
  readonly deploy: readonly string[];
  /** Shows whether copies of the database of keys serve its reads; null without that database. */
  readonly replication: { readonly name: string; readonly words: readonly string[] } | null;
}

/** @param environment name in wrangler.toml; '' = the top level */
export function planOf({ databases, secrets }: WorkerEnvironment, environment: string): Plan {
  const env = `--env=${environment}`;
  const missing = databases.filter(({ database_id }) => database_id === undefined);
  const keys = databases.find(({ binding }) => binding === 'DB')?.database_name;
  const names = new Set(missing.map(({ database_name }) => database_name));
  return {
    check: ['deploy', '--dry-run', env],
    listDatabases: ['d1', 'list', '--json'],
    createDatabases: [...names].map((name) => ({ name, words: ['d1', 'create', name] })),
    listSecrets: ['secret', 'list', env],
    secrets,
    migrate: databases.map(({ binding }) => ['d1', 'migrations', 'apply', binding, env, '--remote']),
    deploy: ['deploy', env],
    replication: keys === undefined ? null : { name: keys, words: ['d1', 'info', keys, '--json'] },
  };
}

/** Returns the plan as it is printed: each command, and when it runs. */
export function planLines(plan: Plan): string[] {
  const line = (words: readonly string[], when = '') => `  wrangler ${words.join(' ')}${when}`;
  return [
    line(plan.check),
    ...(plan.createDatabases.length === 0 ? [] : [line(plan.listDatabases)]),
    ...plan.createDatabases.map(({ words }) => line(words, '   (if the account lacks it)')),
    line(plan.listSecrets),
    ...plan.migrate.map((words) => line(words)),
    line(plan.deploy, `   (with those secrets that the Worker lacks: ${plan.secrets.join(', ')})`),
    ...(plan.replication === null ? [] : [line(plan.replication.words)]),
    '  GET /health, POST /v1/completions without a key, GET /admin/v1/plans with the admin key',
  ];
}
