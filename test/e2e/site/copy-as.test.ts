import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { OTHER_HOST, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../../..');
const PROMPT = 'Once upon a time there was a "king"\nwho didn\'t say \\n';

/** What a pasted code runs in. The file is beside the packages that the code imports. */
function inFile(extension: string, code: string): string {
  const file = path.join(ROOT, `.example-${process.pid}-${performance.now()}${extension}`);
  writeFileSync(file, code);
  onTestFinished(() => rmSync(file));
  return file;
}

/** test/clients runs the code for openai-python, which needs Python's package. */
const RUNNERS: Readonly<Record<string, (code: string) => [string, string[]]>> = {
  curl: (code) => ['sh', ['-c', code]],
  'openai-node': (code) => [process.execPath, [inFile('.ts', code)]],
  fetch: (code) => [process.execPath, [inFile('.ts', code)]],
};

test.for(Object.keys(RUNNERS))(
  'the copied %s code runs, and gives what the page gives',
  async (form, { visit, system }) => {
    const { page } = await visit('/');
    await typeInto(page.getByRole('textbox', { name: 'Text' }), PROMPT);
    await page.getByLabel('Preset').selectOption('Most likely');
    await typeInto(page.getByLabel('stop', { exact: true }), '\\n\\n\\n');
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Copy as code…' }).click();
    await page.getByText(form, { exact: true }).click();
    const code = (await page.locator('.code-block code').textContent())!;
    expect(code).not.toContain(system.apiKey);
    const [file, args] = RUNNERS[form]!(code);
    const { stdout } = await run(file, args, { env: { ...process.env, KEY: system.apiKey }, cwd: ROOT });

    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Complete' }).click();
    await page.getByRole('status').getByText('Finished').waitFor();
    const lines = await page.getByRole('textbox', { name: 'Text' }).locator('.cm-line').allTextContents();
    const completion = lines.join('\n').slice(PROMPT.length);
    expect(completion.length).toBeGreaterThan(20);
    const printed = form === 'curl' ? JSON.parse(stdout).choices[0].text : stdout.replace(/\n$/, '');
    expect(printed).toBe(completion);
  },
);

test('the code is selected where the browser has no clipboard', async ({ visit }) => {
  const { page, consoleErrors } = await visit('/', { host: OTHER_HOST });
  await typeInto(page.getByRole('textbox', { name: 'Text' }), PROMPT);
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name: 'Copy as code…' }).click();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  const code = await page.locator('.code-block code').textContent();
  await expect.poll(() => page.evaluate('getSelection().toString()')).toBe(code);
  expect(consoleErrors).toEqual([]);
});
