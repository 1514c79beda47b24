import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { packageManifest } from '../../origin/cli/package/manifest.ts';
import { stagePackage } from '../../origin/cli/package/stage.ts';
import { buildSite } from '../../origin/cli/start/local-worker.ts';
import { Chroot, hasChroot } from '../support/chroot.ts';
import { installedFolders } from '../support/production-packages.ts';
import { exitOf, freePort, startSystem } from '../support/system.ts';

/** Links packages of the checkout, so that the tarball's dependencies are there without the network. */
function linkPackages(folders: readonly string[], app: string): void {
  for (const folder of folders) {
    if (folders.some((outer) => folder.startsWith(`${outer}/`))) continue;
    const target = path.join(app, folder);
    mkdirSync(path.dirname(target), { recursive: true });
    execFileSync('cp', ['-al', folder, target]);
  }
}

describe('the package', () => {
  const app = mkdtempSync(path.join(tmpdir(), 'continuo-app-'));
  const { name, bin, dependencies } = packageManifest();
  const folder = path.join(app, 'node_modules', name);
  const command = path.join(folder, bin.continuo);
  const PAGE = 'worker/site/dist/public/index.html';

  // An installation without the network: the package, and only the packages that its manifest names.
  beforeAll(async () => {
    mkdirSync(folder, { recursive: true });
    // As `npm start` leaves the page.
    await buildSite();
    chmodSync(PAGE, 0o600);
    await stagePackage(folder);
    for (const dependency of Object.keys(dependencies)) {
      const link = path.join(app, 'node_modules', dependency);
      mkdirSync(path.dirname(link), { recursive: true });
      symlinkSync(path.resolve('node_modules', dependency), link);
    }
  });

  test('holds no TypeScript, takes at most 30 MB, and npm packs all of it', () => {
    const listed = execFileSync('npm', ['pack', '--dry-run', '--json'], { cwd: folder, encoding: 'utf8' });
    const [packed] = Object.values(
      JSON.parse(listed) as Record<string, { size: number; entryCount: number }>,
    );
    expect(packed!.size).toBeLessThanOrEqual(30e6);
    const files = globSync('**/*.*', { cwd: folder });
    expect(files.filter((file) => file.endsWith('.ts'))).toEqual([]);
    expect(packed!.entryCount).toBeGreaterThanOrEqual(files.length);
  });

  test('everyone can read the page, also if its files were made for one user', () => {
    expect(statSync(path.join(folder, PAGE)).mode & 0o777).toBe(0o644);
    expect(statSync(path.dirname(path.join(folder, PAGE))).mode & 0o777).toBe(0o755);
  });

  test('serves the page and completions with constraints outside a checkout', async () => {
    const system = await startSystem({}, null, [command, 'serve', '--no-open']);
    try {
      const page = await fetch(system.url, { headers: { accept: 'text/html' } });
      expect(await page.text()).toContain('<script type="module"');
      const answer = await fetch(`${system.url}/v1/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'default',
          prompt: 'The end',
          max_tokens: 8,
          grammar: 'root ::= "x" "y"',
        }),
      });
      expect(await answer.json()).toMatchObject({ choices: [{ text: 'xy', finish_reason: 'stop' }] });
    } finally {
      await system.stop();
    }
  });

  // npm resolves the dependencies offline, among packages that are there already: how it fetches them is not tested.
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

  test('declares the version of the checkout, and each dependency with one exact version', () => {
    const { version } = JSON.parse(readFileSync('origin/cli/package.json', 'utf8')) as { version: string };
    expect(packageManifest().version).toBe(version);
    for (const range of Object.values(dependencies)) expect(range).toMatch(/^\d+\.\d+\.\d+/);
  });
});
