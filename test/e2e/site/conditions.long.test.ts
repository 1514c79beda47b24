import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { findChromium } from '../../support/browser/chromium.ts';
import { singleTokens } from '../../support/browser/single-tokens.ts';
import { storedText, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a king';
const textOf = (page: Page) => page.getByRole('textbox', { name: 'Text' });
const status = (page: Page) => page.getByRole('status');
const view = (page: Page, name: string) => page.getByRole('navigation', { name: 'Views' }).getByText(name);

async function complete(page: Page): Promise<void> {
  await typeInto(textOf(page), PROMPT);
  await page.keyboard.press('Control+Enter');
  await status(page).getByText('Finished').waitFor();
}

test('with site data blocked, the page completes, and the documentation opens', async ({
  system,
  onTestFinished,
}) => {
  const profile = mkdtempSync(path.join(tmpdir(), 'profile-'));
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

describe('a long text', () => {
  const words = (count: number) => Array.from({ length: count }, (_, index) => ` w${index}`);

  test('is stored while it is streamed', async ({ visit, onTestFinished }) => {
    const upstream = await singleTokens(words(4_000), 200);
    onTestFinished(() => upstream.close());
    const { page } = await visit('/');
    await page.route('**/v1/completions', (route) => route.continue({ url: upstream.url }));
    await typeInto(textOf(page), PROMPT);
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => storedText(page)).toContain(`${PROMPT} w0 w1`);
    const phase = await status(page).textContent();
    expect(phase).toBe('Streaming');
  });

  test('survives a reload at its last token', async ({ visit, onTestFinished }) => {
    const all = words(20_000);
    const upstream = await singleTokens(all, 8_000);
    onTestFinished(() => upstream.close());
    const { page } = await visit('/');
    await page.route('**/v1/completions', (route) => route.continue({ url: upstream.url }));
    await typeInto(textOf(page), PROMPT);
    const reloaded = page.waitForEvent('load');
    await page.evaluate(() => {
      const phase = document.querySelector('[role=status]')!;
      new MutationObserver(() => {
        if (phase.textContent.startsWith('Finished')) location.reload();
      }).observe(phase, { childList: true, characterData: true, subtree: true });
    });
    await page.keyboard.press('Control+Enter');
    await reloaded;
    await expect.poll(() => storedText(page)).toContain(PROMPT + all.join(''));
  });
});

describe('for those who do not see colours', () => {
  test('forced colours show probabilities as lines, and white space has signs', async ({ visit }) => {
    const { page } = await visit('/');
    await page.emulateMedia({ forcedColors: 'active' });
    await complete(page);
    const lines = () =>
      textOf(page)
        .locator('.token')
        .evaluateAll((tokens) =>
          tokens.map((token) => [
            / s(\d)/.exec(token.className)![1],
            getComputedStyle(token).borderBottomWidth,
          ]),
        );
    const widths = await lines();
    expect(widths.length).toBeGreaterThan(20);
    expect(widths.filter(([level, width]) => width !== `${level}px`)).toEqual([]);
    await page.getByText('Off', { exact: true }).click();
    await expect
      .poll(async () => new Set((await lines()).map(([, width]) => width)))
      .toEqual(new Set(['0px']));

    await typeInto(textOf(page), 'a\u00a0b\u200bc\u3000d\n\ne');
    await page.getByText('White space').click();
    const lineSigns = () =>
      textOf(page)
        .locator('.cm-line')
        .evaluateAll((all) => all.map((line) => getComputedStyle(line, '::after').content));
    await expect.poll(lineSigns).toEqual(['"↵"', '"↵"', 'none']);
    await expect.poll(() => textOf(page).locator('.cm-line').first().textContent()).toBe('a⍽bU+200BcU+3000d');
  });

  test('a screen reader hears the token and the alternative that the keyboard reaches', async ({ visit }) => {
    const { page } = await visit('/');
    await page.getByLabel('Preset').selectOption('Most likely');
    await complete(page);
    const heard = page.locator('.text-panel > [aria-live]');
    await textOf(page).press('Control+Home');
    await textOf(page).press('Alt+]');
    await expect.poll(() => heard.textContent()).toMatch(/^Token 1 of \d+: \S+, [\d.]+ %$/);
    await textOf(page).press('Alt+]');
    await expect.poll(() => heard.textContent()).toMatch(/^Token 2 of \d+: .+, [\d.]+ %$/);
    await textOf(page).press('ArrowDown');
    await expect.poll(() => heard.textContent()).toMatch(/^Alternative 2 of 5: .+, [\d.]+ %$/);
    await textOf(page).press('Escape');
    await expect.poll(() => heard.textContent()).toBe('');

    await view(page, 'Tree').click();
    await page.locator('.tree-start').getByRole('textbox').fill(PROMPT);
    await page.keyboard.press('Control+Enter');
    await page.getByRole('button', { name: 'Branch', exact: true }).click();
    await page.locator('.branch-card').first().click();
    await page.locator('.reading-text').getByRole('option').nth(5).waitFor();
    await page.keyboard.press(']');
    await expect.poll(() => page.locator('.reading > [aria-live]').textContent()).toMatch(/^.+, [\d.]+ %$/);
  });
});

test('in low windows, the tree leaves room to read', async ({ visit }) => {
  const { page } = await visit('/', { width: 720, height: 450, touch: true });
  await view(page, 'Tree').click();
  await page.locator('.tree-start').getByRole('textbox').fill(PROMPT);
  await page.keyboard.press('Control+Enter');
  const room = () => page.locator('.reading').evaluate((pane) => pane.clientHeight);
  for (const [width, height] of [
    [720, 450],
    [844, 390],
    [667, 375],
  ] as const) {
    await page.setViewportSize({ width, height });
    await expect.poll(room, { message: `at ${width} × ${height}` }).toBeGreaterThanOrEqual(150);
  }
  await page.getByRole('button', { name: 'Branch', exact: true }).tap();
  await page.locator('.branch-card').first().waitFor();
});
