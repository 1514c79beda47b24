import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { storedText, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time';

const keyButton = (page: Page, state = '') => page.getByRole('button', { name: `Key ${state}` });
const accepted = (page: Page) => keyButton(page, 'accepted').waitFor();
const dialog = (page: Page) => page.getByRole('dialog', { name: 'API key' });
const link = (page: Page, name: string) => page.getByRole('navigation', { name: 'Views' }).getByText(name);

/** Types a key into its dialog. */
async function enterKey(page: Page, key: string): Promise<void> {
  await keyButton(page).click();
  await page.getByLabel('Key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Use this key' }).click();
}

/** Every address that the tab's history has. */
async function historyOf(page: Page): Promise<string> {
  const devTools = await page.context().newCDPSession(page);
  const { entries } = await devTools.send('Page.getNavigationHistory');
  return JSON.stringify(entries);
}

/** Waits longer than an answer of another tab takes. */
const settled = (page: Page) => page.waitForTimeout(1_000);

/** Clicks and returns the tab that opens. */
async function openedBy(page: Page, click: () => Promise<void>): Promise<Page> {
  const opened = page.context().waitForEvent('page');
  await click();
  return opened;
}

test('a typed key reaches the documentation and comes back, and is in no address, storage and log', async ({
  visit,
  system,
}) => {
  const { page, requestedUrls } = await visit('/', { key: null });
  await enterKey(page, system.apiKey);
  await accepted(page);
  await typeInto(page.getByRole('textbox', { name: 'Text' }), PROMPT);
  await page.getByRole('button', { name: 'Complete' }).click();
  await page.getByRole('status').getByText('Finished').waitFor();
  await expect.poll(() => storedText(page)).toContain(PROMPT);
  await link(page, 'Docs').click();
  await page.waitForURL('**/docs');
  await accepted(page);
  await link(page, 'Tree').click();
  await page.waitForURL('**/#/tree');
  await accepted(page);
  await page.goBack();
  await page.waitForURL('**/docs');
  await accepted(page);
  await page.goForward();
  await accepted(page);
  await link(page, 'Playground').click();
  await page.getByRole('link', { name: 'Basics in the documentation' }).press('Enter');
  await page.waitForURL('**/docs/guides/api#fields');
  await accepted(page);
  const logs = system.log('worker') + system.log('origin');
  const traces = [await historyOf(page), await storedText(page), logs, ...requestedUrls].join();
  expect(traces).not.toContain(system.apiKey);
  await page.reload();
  await keyButton(page, 'no-key').waitFor();
});

test('a key is stored only while it is kept, and stays if a link brings another one for its tab', async ({
  visit,
  system,
}) => {
  const { page, context } = await visit('/', { key: null });
  await keyButton(page, 'no-key').click();
  await page.getByLabel('Key', { exact: true }).fill(system.apiKey);
  const keep = page.getByLabel('Keep the key on this device');
  await keep.check();
  await page.getByRole('button', { name: 'Use this key' }).click();
  await expect.poll(() => storedText(page)).toContain(system.apiKey);

  await page.goto(`${system.url}/#key=sk-of-a-link`);
  await keyButton(page, 'refused').click();
  await dialog(page).getByText('This device keeps another key').waitFor();
  const keeps = await page.getByLabel('Keep the key on this device').isChecked();
  expect(keeps).toBe(false);
  await page.getByRole('button', { name: 'Use this key' }).click();
  const docs = await openedBy(page, () => link(page, 'Docs').click({ button: 'middle' }));
  await accepted(docs);
  const later = await context.newPage();
  await later.goto(system.url);
  await accepted(later);
  await settled(later);
  await accepted(later);
  await page.reload();
  await accepted(page);
  await page.goto(`${system.url}/docs#key=sk-of-a-link`);
  await keyButton(page, 'refused').waitFor();
  await page.reload();
  await accepted(page);
  const stored = await storedText(page);
  expect(stored).toContain(system.apiKey);
  expect(stored).not.toContain('sk-of-a-link');
  await keyButton(page).click();
  await keep.uncheck();
  await expect.poll(() => storedText(page)).not.toContain(system.apiKey);
});

test('a key that is typed, and not kept, reaches a tab that a middle click, Ctrl-click or the menu opens, and no other tab', async ({
  visit,
  system,
}) => {
  const { page, context } = await visit('/', { key: null });
  const before = await context.newPage();
  await before.goto(system.url);
  await enterKey(page, system.apiKey);
  const later = await context.newPage();
  await later.goto(system.url);
  await keyButton(later, 'no-key').waitFor();
  const middle = await openedBy(page, () => link(page, 'Docs').click({ button: 'middle' }));
  await accepted(middle);
  await accepted(
    await openedBy(middle, () => link(middle, 'Compare').click({ modifiers: ['ControlOrMeta'] })),
  );
  await link(page, 'Docs').click({ button: 'right' });
  const fromMenu = await context.newPage();
  await fromMenu.goto(`${system.url}/docs`);
  await accepted(fromMenu);
  const unasked = await context.newPage();
  await unasked.goto(`${system.url}/docs`);
  await settled(unasked);
  for (const tab of [before, unasked]) await keyButton(tab, 'no-key').waitFor();
  const histories = await Promise.all([middle, fromMenu].map(historyOf));
  expect(histories.join()).not.toContain(system.apiKey);
});

test('the link of a local start is worth the key once, and the key of a link is taken while the page waits for its storage', async ({
  visit,
  system,
}) => {
  // No other test uses it.
  const [printed = ''] = /\S+#code=\S+/.exec(system.banner) ?? [];
  const { page, context } = await visit('/', { key: null });
  await page.goto(printed);
  await accepted(page);
  expect(page.url()).toBe(`${system.url}/#/`);
  const history = await historyOf(page);
  expect(history).not.toContain(system.apiKey);
  const again = await context.newPage();
  await again.goto(printed);
  await dialog(again).getByText('its link, which works once').waitFor();
  await again.getByLabel('Key', { exact: true }).fill(system.apiKey);
  await again.keyboard.press('Enter');
  await accepted(again);

  // Another version has to wait until these pages are closed, and every later opening waits for it.
  await page.evaluate(() => void indexedDB.open('continuo', 2));
  const waiting = await context.newPage();
  await waiting.goto(system.url);
  await waiting.evaluate((key) => location.assign(`#key=${key}`), system.apiKey);
  for (const tab of [page, again]) await tab.close();
  await accepted(waiting);
});
