import { expect } from 'vitest';
import type { SitePage } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

/** Loads the page again as on a busy machine: what it does with a timer, also after a paint, comes late. */
async function withLateTimers({ page, context }: SitePage, lateMs = 1_000): Promise<void> {
  await context.addInitScript((added) => {
    const inTime = setTimeout;
    const late = (run: () => void, ms = 0) => inTime(run, ms + added);
    Reflect.set(globalThis, 'setTimeout', late);
  }, lateMs);
  await page.reload();
}

test('what is clicked and typed as soon as a view is seen arrives', async ({ visit }) => {
  const site = await visit('/');
  const { page } = site;
  await withLateTimers(site);
  for (const view of ['Tree', 'Compare']) {
    await page.getByRole('link', { name: view }).click();
    await page.getByRole('heading', { name: view, exact: true }).waitFor();
    await page.keyboard.type('ab');
    await expect.poll(() => page.getByRole('textbox', { name: 'Prompt' }).inputValue()).toBe('ab');
  }
});

test('a key that a link brings while the page waits for its storage is taken', async ({ visit, system }) => {
  const { page, context } = await visit('/', { key: null });
  // Another version has to wait until this page is closed, and every later opening waits for it.
  await page.evaluate(() => void indexedDB.open('continuo', 2));
  const other = await context.newPage();
  await other.goto(system.url);
  await other.evaluate((key) => location.assign(`#key=${key}`), system.apiKey);
  await page.close();
  await other.getByRole('button', { name: 'Key accepted' }).waitFor();
});

test('the documentation has its key and its links as soon as it is seen', async ({ visit }) => {
  const site = await visit('/docs');
  const { page } = site;
  await withLateTimers(site);
  await page.getByRole('searchbox').waitFor();
  await page.keyboard.press('/');
  await page.getByRole('searchbox').and(page.locator(':focus')).waitFor();
  const { length } = site.requestedUrls;
  await page.getByRole('link', { name: 'Models', exact: true }).first().press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor();
  expect(site.requestedUrls.slice(length).filter((url) => url.endsWith('/docs/guides/models'))).toEqual([]);
});

test('the verdict on a constraint is that of the shown text, and nothing unchecked can be used', async ({
  visit,
  system,
}) => {
  const site = await visit('/');
  const { page } = site;
  await withLateTimers(site, 5_000);
  await page.evaluate((key) => location.assign(`#key=${key}`), system.apiKey);
  await page.locator('summary', { hasText: 'Constraint' }).press('Enter');
  await page.getByRole('button', { name: 'Edit schema' }).press('Enter');
  const dialog = page.getByRole('dialog');
  const verdict = dialog.getByRole('status');
  const use = dialog.getByRole('button', { name: 'Use this constraint' });
  await verdict.getByText('Valid').waitFor();
  await dialog.getByRole('textbox', { name: 'Constraint' }).press('x');
  const atOnce = [await verdict.textContent(), await use.isEnabled()];
  expect(atOnce).toEqual(['Checking', false]);
  await verdict.getByText('at line 1').waitFor();
  await expect.poll(() => use.isEnabled()).toBe(false);
  await dialog.getByRole('radio', { name: 'Grammar' }).press('Space');
  const ofGrammarAtOnce = await verdict.textContent();
  expect(ofGrammarAtOnce).toBe('Checking');
  await verdict.getByText('Valid').waitFor();
  await expect.poll(() => use.isEnabled()).toBe(true);
  expect(site.consoleErrors).toEqual([]);
});
