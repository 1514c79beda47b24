import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Chroot, hasChroot } from '../support/chroot.ts';
import { installedFolders } from '../support/production-packages.ts';
import { exitOf, freePort } from '../support/system.ts';
import { stagedPackage } from './staged-package.ts';

/** Links packages of the checkout, so that the tarball's dependencies are there without the network. */
function linkPackages(folders: readonly string[], app: string): void {
  for (const folder of folders) {
    if (folders.some((outer) => folder.startsWith(`${outer}/`))) continue;
    const target = path.join(app, folder);
    mkdirSync(path.dirname(target), { recursive: true });
    execFileSync('cp', ['-al', folder, target]);
  }
}

const { folder, dependencies } = stagedPackage();

test('the package holds no TypeScript, takes at most 36 MB, and npm packs all of it', () => {
  const listed = execFileSync('npm', ['pack', '--dry-run', '--json'], { cwd: folder, encoding: 'utf8' });
  const [packed] = Object.values(JSON.parse(listed) as Record<string, { size: number; entryCount: number }>);
  expect(packed!.size).toBeLessThanOrEqual(36e6);
  const files = globSync('**/*.*', { cwd: folder });
  expect(files.filter((file) => file.endsWith('.ts'))).toEqual([]);
  expect(packed!.entryCount).toBeGreaterThanOrEqual(files.length);
});

// npm resolves the dependencies offline, among packages that are there already: how it fetches them is not
// tested.
test.runIf(hasChroot)(
  'npm installs the tarball where no source is, and serve, complete and doctor work there and write only their state',
  async () => {
    const ports = [await freePort(), await freePort(), await freePort()];
    const chroot = new Chroot(path.resolve('.continuo'), {
      CONTINUO_PORT: String(ports[0]),
      CONTINUO_ORIGIN_PORT: String(ports[1]),
      CONTINUO_METRICS_PORT: String(ports[2]),
    });
    onTestFinished(() => chroot.remove());
    const npm = (cwd: string, ...args: string[]) => execFileSync('npm', args, { cwd, encoding: 'utf8' });
    const tarball = npm(folder, 'pack', '--silent', '--pack-destination', chroot.app).trim();
    linkPackages(installedFolders('.', Object.keys(dependencies)), chroot.app);
    npm(chroot.app, 'install', '--offline', '--ignore-scripts', '--no-audit', '--silent', `./${tarball}`);

    const run = async (...args: string[]) => {
      const { child, output } = chroot.start(['continuo', ...args]);
      return { code: await exitOf(child), output: output() };
    };
    const server = chroot.start(['continuo', 'serve', '--no-open']);
    onTestFinished(() => void server.child.kill('SIGKILL'));
    await expect.poll(server.output).toContain('Ctrl-C stops everything.');
    const { code, output } = await run('complete', 'Once upon a time', '--regex', 'xy');
    expect([code, output]).toEqual([0, 'xy']);
    const doctor = await run('doctor', '--json');
    const findings = JSON.parse(doctor.output) as { readonly name: string; readonly status: string }[];
    expect(findings.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(findings.map(({ name }) => name)).toEqual(expect.arrayContaining(['Server', 'Key and models']));
    server.child.kill('SIGINT');
    expect(await exitOf(server.child)).toBe(0);
    const at = (directory: string) => readdirSync(path.join(chroot.root, directory));
    expect([at('home'), at('home/.local/share'), at('tmp')]).toEqual([['.local'], ['continuo'], []]);
  },
);
