import { expect } from 'vitest';
import { OTHER_HOST, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a "king"\nwho didn\'t say \\n';

test('over plain HTTP from another host, the code is selected in place of a clipboard, and the tree grows', async ({
  visit,
}) => {
  const { page, consoleErrors } = await visit('/', { host: OTHER_HOST });
  await typeInto(page.getByRole('textbox', { name: 'Text' }), PROMPT);
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name: 'Copy as code…' }).click();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  const code = await page.locator('.code-block code').textContent();
  await expect.poll(() => page.evaluate('getSelection().toString()')).toBe(code);
  await page.keyboard.press('Escape');
  const isSecure = await page.evaluate('isSecureContext');
  expect(isSecure).toBe(false);
  await page.getByRole('link', { name: 'Tree' }).click();
  await typeInto(page.getByRole('textbox', { name: 'Prompt' }), 'Once upon a time');
  await page.getByRole('button', { name: 'Start the tree' }).click();
  await page.getByRole('treeitem').nth(1).waitFor();
  await page.getByRole('button', { name: 'Stop' }).and(page.locator(':disabled')).waitFor();
  await expect.poll(() => page.locator('.reading-text').textContent()).toContain('Once upon a time');
  expect(consoleErrors).toEqual([]);
});
