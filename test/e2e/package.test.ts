import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { packageManifest } from '../../origin/cli/package/manifest.ts';
import { stagePackage } from '../../origin/cli/package/stage.ts';
import { startSystem } from '../support/system.ts';

describe('the package', () => {
  const app = mkdtempSync(path.join(tmpdir(), 'continuo-app-'));
  const { name, bin, dependencies } = packageManifest();
  const folder = path.join(app, 'node_modules', name);
  const command = path.join(folder, bin.continuo);

  // An installation without the network: the package, and only the packages that its manifest names.
  beforeAll(async () => {
    mkdirSync(folder, { recursive: true });
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

  test('declares the version of the checkout, and each dependency with one exact version', () => {
    const { version } = JSON.parse(readFileSync('origin/cli/package.json', 'utf8')) as { version: string };
    expect(packageManifest().version).toBe(version);
    for (const range of Object.values(dependencies)) expect(range).toMatch(/^\d+\.\d+\.\d+/);
  });
});
