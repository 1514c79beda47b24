import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { build, type Plugin } from 'vite';
import { expect, test } from 'vitest';
import { sizeBudget } from '../../../../worker/site/build/size-budget.ts';

const SITE = path.resolve(import.meta.dirname, '../../../../worker/site');

const buildPage = () =>
  execFileSync(process.execPath, [path.join(SITE, 'build/main.ts')], { stdio: 'ignore' });
const builtAt = () => statSync(path.join(SITE, 'dist/public/index.html')).mtimeMs;

test('builds the page once: a second build of the same sources changes nothing', () => {
  buildPage();
  const first = builtAt();
  buildPage();
  expect(builtAt()).toBe(first);
});

test('a build of a test is that of a deployment: no file names a place of the sources', () => {
  buildPage();
  const assets = path.join(SITE, 'dist/public/assets');
  const scripts = readdirSync(assets).filter((name) => name.endsWith('.js'));
  const named = scripts.filter((name) => readFileSync(path.join(assets, name), 'utf8').includes(`${SITE}/`));
  expect(named).toEqual([]);
});

/** Builds one entry of about 1,000 letters. */
const buildWithBudget = (limit: number) => {
  const text = Array.from({ length: 1_000 }, (_, index) =>
    String.fromCharCode(97 + ((index * index * 7) % 26)),
  );
  const entry: Plugin = {
    name: 'entry',
    resolveId: (id) => (id === 'entry' ? id : null),
    load: (id) => (id === 'entry' ? `console.log(${JSON.stringify(text.join(''))})` : null),
  };
  return build({
    configFile: false,
    logLevel: 'silent',
    plugins: [entry, sizeBudget(limit, Number.MAX_SAFE_INTEGER)],
    build: { write: false, rolldownOptions: { input: 'entry' } },
  });
};

test('a first load above the budget fails the build', async () => {
  await expect(buildWithBudget(50)).rejects.toThrow(/KB of gzipped JavaScript at first; the limit is/);
  await expect(buildWithBudget(2_000)).resolves.toBeDefined();
});
