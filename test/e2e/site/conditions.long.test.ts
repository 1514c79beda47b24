import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { findChromium } from '../../support/browser/chromium.ts';
import { OTHER_HOST, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { button, complete, PROMPT, popover, status, textOf, withLateTimers } from './playground-page.ts';

const view = (page: Page, name: string) => page.getByRole('navigation', { name: 'Views' }).getByText(name);

test('with site data blocked, the page completes, and the documentation opens', async ({
  system,
  onTestFinished,
}) => {
  const profile = newDirectory();
  mkdirSync(path.join(profile, 'Default'));
  const preferences = { profile: { default_content_setting_values: { cookies: 2 } } };
  writeFileSync(path.join(profile, 'Default/Preferences'), JSON.stringify(preferences));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: findChromium()!,
    args: ['--no-sandbox', '--disable-gpu'],
  });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  await page.goto(`${system.url}/#key=${system.apiKey}`);
  const storage = await page.evaluate('try { localStorage.length } catch (error) { String(error) }');
  expect(storage).toContain('SecurityError');
  await complete(page);
  await page.getByRole('button', { name: 'Switch between light and dark' }).click();
  await view(page, 'Tree').click();
  await page.getByText('Trees cannot be stored here').waitFor();
  await view(page, 'Compare').click();
  await page.getByRole('button', { name: 'Compare', exact: true }).waitFor();
  await view(page, 'Docs').click();
  await page.getByRole('heading', { name: 'Documentation' }).waitFor();
  expect(errors).toEqual([]);
});

/** Tokens of the text: the level of each tint, and the width of its line. */
const lines = (page: Page) =>
  textOf(page)
    .locator('.token')
    .evaluateAll((tokens) =>
      tokens.map((token) => [/ s(\d)/.exec(token.className)![1], getComputedStyle(token).borderBottomWidth]),
    );

test('without colours, probabilities are lines, white space has signs, and a screen reader hears what the keyboard reaches', async ({
  visit,
}) => {
  const { page, violations } = await visit('/');
  const sample = page.getByRole('figure');
  await sample.waitFor();
  const color = (word: string) =>
    sample.getByText(word, { exact: true }).evaluate((element) => getComputedStyle(element).backgroundColor);
  const [none, some, most] = [await color('was'), await color('the'), await color('moon')];
  expect(new Set([none, some, most]).size).toBe(3);
  expect(none).toMatch(/ 0\)$/);
  expect(await violations()).toEqual([]);

  await page.emulateMedia({ forcedColors: 'active' });
  await page.getByLabel('Preset').selectOption('Most likely');
  await complete(page);
  await sample.waitFor({ state: 'detached' });
  const widths = await lines(page);
  expect(widths.length).toBeGreaterThan(20);
  expect(widths.filter(([level, width]) => width !== `${level}px`)).toEqual([]);
  await page.getByText('Off', { exact: true }).click();
  const shownWidths = async () => new Set((await lines(page)).map(([, width]) => width));
  await expect.poll(shownWidths).toEqual(new Set(['0px']));
  await page.emulateMedia({ forcedColors: 'none' });

  const heard = page.locator('.text-panel > [aria-live]');
  await textOf(page).press('Control+Home');
  await textOf(page).press('Alt+]');
  await expect.poll(() => heard.textContent()).toMatch(/^Token 1 of \d+: \S+, [\d.]+ %$/);
  await expectReadableAlternatives(page);
  expect(await violations()).toEqual([]);
  await textOf(page).press('Alt+]');
  await expect.poll(() => heard.textContent()).toMatch(/^Token 2 of \d+: .+, [\d.]+ %$/);
  await textOf(page).press('ArrowDown');
  await expect.poll(() => heard.textContent()).toMatch(/^Alternative 2 of 5: .+, [\d.]+ %$/);
  await textOf(page).press('Escape');
  await expect.poll(() => heard.textContent()).toBe('');

  const first = textOf(page).locator('.token').first();
  const before = await first.textContent();
  for (const key of ['Control+Home', 'Alt+]', 'ArrowDown', 'Tab']) await page.keyboard.press(key);
  await expect.poll(() => first.textContent()).not.toBe(before);
  await status(page).getByText('Finished').waitFor();

  await typeInto(textOf(page), 'a\u00a0b\u200bc\u3000d\n\ne');
  await page.getByText('White space').click();
  const lineSigns = () =>
    textOf(page)
      .locator('.cm-line')
      .evaluateAll((all) => all.map((line) => getComputedStyle(line, '::after').content));
  await expect.poll(lineSigns).toEqual(['"↵"', '"↵"', 'none']);
  await expect.poll(() => textOf(page).locator('.cm-line').first().textContent()).toBe('a⍽bU+200BcU+3000d');

  await view(page, 'Tree').click();
  await page.locator('.tree-start').getByRole('textbox').fill(PROMPT);
  await page.keyboard.press('Control+Enter');
  await button(page, 'Branch').click();
  await page.locator('.branch-card').first().click();
  await page.locator('.reading-text').getByRole('option').nth(5).waitFor();
  await page.keyboard.press(']');
  await expect.poll(() => page.locator('.reading > [aria-live]').textContent()).toMatch(/^.+, [\d.]+ %$/);
});

/** Bars can be read, names stay in their line, and the rest of the probability comes last. */
async function expectReadableAlternatives(page: Page): Promise<void> {
  await popover(page).getByRole('listitem').last().getByText('all others').waitFor();
  const rows = await popover(page).getByRole('listitem').allInnerTexts();
  const percents = rows.map((row) => Number(/([\d.]+) %/.exec(row)![1]));
  expect(percents.reduce((sum, value) => sum + value, 0)).toBeCloseTo(100, 0);
  const bars = await popover(page)
    .locator('.bar')
    .evaluateAll((all) =>
      all.map((bar) => [bar.getBoundingClientRect().width, bar.getBoundingClientRect().height]),
    );
  for (const [width, height] of bars) expect([width! >= 90, height! >= 12]).toEqual([true, true]);
  const bytes = await popover(page)
    .locator('.bytes')
    .evaluateAll((all) => all.map((one) => one.getClientRects().length));
  expect(new Set(bytes)).toEqual(new Set([1]));
}

test('what is clicked and typed as soon as a view or the documentation is seen arrives', async ({
  visit,
  system,
}) => {
  const site = await visit('/');
  const { page } = site;
  await withLateTimers(site);
  for (const name of ['Tree', 'Compare']) {
    await page.getByRole('link', { name }).click();
    await page.getByRole('heading', { name, exact: true }).waitFor();
    await page.keyboard.type('ab');
    await expect.poll(() => page.getByRole('textbox', { name: 'Prompt' }).inputValue()).toBe('ab');
  }
  await page.goto(`${system.url}/docs`);
  await page.getByRole('searchbox').waitFor();
  await page.keyboard.press('/');
  await page.getByRole('searchbox').and(page.locator(':focus')).waitFor();
  const { length } = site.requestedUrls;
  await page.getByRole('link', { name: 'Models', exact: true }).first().press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor();
  expect(site.requestedUrls.slice(length).filter((url) => url.endsWith('/docs/guides/models'))).toEqual([]);
});

test('over plain HTTP from another host, the code is selected in place of a clipboard, and the tree grows', async ({
  visit,
}) => {
  const { page, consoleErrors } = await visit('/', { host: OTHER_HOST });
  await typeInto(textOf(page), 'Once upon a time there was a "king"\nwho didn\'t say \\n');
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

test('on a phone, views look the same whichever were open before', async ({ visit }) => {
  const { page } = await visit('/', { width: 390, touch: true });
  const placesIn = (root: string) =>
    page
      .locator(`${root} *`)
      .evaluateAll((all) => all.map((one) => JSON.stringify(one.getBoundingClientRect())));
  const parameters = async () => {
    await view(page, 'Playground').click();
    await button(page, 'Parameters').click();
    await page.locator('dialog .group').first().waitFor();
    const places = await placesIn('dialog .parameters');
    await page.keyboard.press('Escape');
    return places;
  };
  const compare = async () => {
    await view(page, 'Compare').click();
    await page.getByText('Or start with an example').waitFor();
    return await placesIn('.compare');
  };
  const before = [await parameters(), await compare()];
  await view(page, 'Tree').click();
  await page.getByRole('button', { name: 'Start the tree' }).waitFor();
  await view(page, 'Account').click();
  await page.getByRole('heading', { name: 'Limits and balance' }).waitFor();
  const after = [await parameters(), await compare()];
  expect(after).toEqual(before);
});
