import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { packageManifest } from '../../origin/cli/package/manifest.ts';
import { startSystem } from '../support/system.ts';
import { PAGE, stagedPackage } from './staged-package.ts';

describe('the package', () => {
  const { folder, command, dependencies } = stagedPackage();

  test('everyone can read the page, also if its files were made for one user', () => {
    expect(statSync(path.join(folder, PAGE)).mode & 0o777).toBe(0o644);
    expect(statSync(path.dirname(path.join(folder, PAGE))).mode & 0o777).toBe(0o755);
  });

  test('serves the page, and to the official client completions, streams and constraints, outside a checkout', async () => {
    const system = await startSystem({}, null, [command, 'serve', '--no-open']);
    try {
      const page = await fetch(system.url, { headers: { accept: 'text/html' } });
      expect(await page.text()).toContain('<script type="module"');
      const { completions } = new OpenAI({
        baseURL: `${system.url}/v1`,
        apiKey: system.apiKey,
        maxRetries: 0,
      });
      const request = { model: 'default', prompt: 'The end', max_tokens: 8, seed: 1 };
      const plain = await completions.create(request);
      let streamed = '';
      for await (const { choices } of await completions.create({ ...request, stream: true }))
        streamed += choices[0]?.text ?? '';
      expect(streamed).toBe(plain.choices[0]?.text);
      const constraint = { grammar: 'root ::= "x" "y"' };
      const constrained = await completions.create({ ...request, ...constraint });
      expect(constrained.choices).toMatchObject([{ text: 'xy', finish_reason: 'stop' }]);
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
