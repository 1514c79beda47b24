import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { migrateLocalDatabases } from '../../../origin/cli/start/local-databases.ts';
import { untilReady } from '../../../origin/cli/start/readiness.ts';
import { ADMIN_KEY_SHA256 } from '../../worker/admin/admin-client.ts';
import { SECRET } from '../../worker/support/fake-origin.ts';

/** A checkout whose programs run. */
export interface Release {
  readonly name: string;
  readonly root: string;
}

const ROOT = path.resolve(import.meta.dirname, '../../..');
const READY_MS = 120_000;

export const THIS_RELEASE: Release = { name: 'working tree', root: ROOT };

const git = (...words: readonly string[]): string =>
  execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).trim();

/** Returns the commit to upgrade from: UPGRADE_FROM, the newest version tag, or yesterday's commit. */
function previousCommit(): string {
  const named = process.env.UPGRADE_FROM;
  if (named) return git('rev-parse', '--short', `${named}^{commit}`);
  const [tag] = git('tag', '--list', 'v*', '--sort=-v:refname', '--no-contains', 'HEAD').split('\n');
  if (tag) return tag;
  const dayBefore = Number(git('log', '-1', '--format=%ct')) - 86_400;
  return git('rev-list', '-1', '--abbrev-commit', `--before=${dayBefore}`, 'HEAD');
}

/** Checks the previous release out, with its packages. The caller removes it. */
export function previousRelease(): Release & { remove(): void } {
  const commit = previousCommit();
  // In the checkout's file system, so that packages can be linked.
  const root = path.join(ROOT, '.continuo', `release-${commit}`);
  const remove = () => void git('worktree', 'remove', '--force', root);
  if (existsSync(root)) remove();
  mkdirSync(path.dirname(root), { recursive: true });
  git('worktree', 'add', '--detach', root, commit);
  const hasSamePackages = git('diff', '--stat', commit, '--', 'package-lock.json') === '';
  if (hasSamePackages) execFileSync('cp', ['-al', path.join(ROOT, 'node_modules'), root]);
  else execFileSync('npm', ['ci', '--silent'], { cwd: root });
  return { name: commit, root, remove };
}

/** A process, and how it ends without cutting what it serves. */
export interface Running {
  stop(): Promise<void>;
}

export function stoppable(child: ChildProcess): Running {
  return {
    async stop() {
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

interface WorkerPlan {
  readonly port: number;
  readonly state: string;
  readonly origins: readonly string[];
}

/** Starts a release's Worker in workerd. */
export async function startWorkerOf(
  { root }: Release,
  { port, state, origins }: WorkerPlan,
): Promise<Running> {
  // Releases before 0.2.0 migrated in their launcher.
  const migrated = { DB: 'worker/migrations', USAGE_DB: 'worker/usage-migrations' };
  const databases = Object.entries(migrated).map(([binding, folder]) => ({
    binding,
    folder: path.join(root, folder),
  }));
  await migrateLocalDatabases(databases, state);
  const upstreams = origins.map((url, index) => ({ kind: 'origin', name: `origin-${index}`, url }));
  const vars = {
    ENVIRONMENT: 'development',
    ORIGIN_SECRET: SECRET,
    ADMIN_KEY_SHA256,
    UPSTREAMS: JSON.stringify(upstreams),
  };
  const child = spawn(process.execPath, ['origin/cli/start/edge.ts'], {
    cwd: root,
    env: {
      ...process.env,
      CONTINUO_HOST: '127.0.0.1',
      CONTINUO_PORT: String(port),
      CONTINUO_WORKER_STATE: state,
      CONTINUO_ORIGIN_URL: origins[0],
      CONTINUO_ORIGINS: JSON.stringify([{ name: 'origin', url: origins[0] }]),
      CONTINUO_WORKER_VARS: JSON.stringify(vars),
    },
    // The Worker ends when its launcher's end of stdin closes.
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  await untilReady(`http://127.0.0.1:${port}/health`, READY_MS, new AbortController().signal);
  return stoppable(child);
}
