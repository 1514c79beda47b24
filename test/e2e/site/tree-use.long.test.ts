import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a king';

const rows = (page: Page) => page.getByRole('treeitem');
const selectedRow = (page: Page) => page.locator('[role=treeitem][aria-selected=true]');
const selected = (page: Page) => selectedRow(page).locator('.outline-text').textContent();
const untilGrown = (page: Page) =>
  page.getByRole('button', { name: 'Stop' }).and(page.locator(':disabled')).waitFor();

/** Starts a tree with four branches, by keys. */
async function startTree(page: Page): Promise<void> {
  await page.keyboard.type(PROMPT);
  await page.keyboard.press('Control+Enter');
  await rows(page).nth(4).waitFor();
  await untilGrown(page);
}

async function fileCommand(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'File' }).click();
  await page.getByRole('button', { name }).click();
}

/** Imports a tree whose root has children with long texts that begin with blank lines. */
async function importBranches(page: Page, count: number): Promise<void> {
  const text = `\n\n${'The wolf went to the deep forest and slept there. '.repeat(12)}`;
  const nodes = Array.from({ length: count }, (_, index) => ({ parent: 0, text: `${text}${index}` }));
  const file = path.join(tmpdir(), `${crypto.randomUUID()}.json`);
  const tree = { format: 'continuo-tree', version: 1, name: 'wide' };
  writeFileSync(file, JSON.stringify({ ...tree, nodes: [{ parent: null, text: PROMPT }, ...nodes] }));
  await page.getByRole('link', { name: 'Tree' }).click();
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import a tree…' }).click();
  await (await chooser).setFiles(file);
  await rows(page).nth(5).waitFor();
}

test('a written prompt survives a reload until its tree is started, and a dialog focuses its first field or the button that changes nothing, takes all keys, and has room for a long name', async ({
  visit,
  system,
}) => {
  const { page } = await visit('/');
  const prompt = page.getByRole('textbox', { name: 'Prompt' });
  await page.getByRole('link', { name: 'Tree' }).click();
  await prompt.waitFor();
  await page.keyboard.type(PROMPT);
  await page.reload();
  await expect.poll(() => prompt.inputValue()).toBe(PROMPT);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('alert').getByText('This page has no API key').waitFor();
  await page.getByRole('button', { name: 'New', exact: true }).press('Enter');
  await expect.poll(() => prompt.inputValue()).toBe('');

  await page.evaluate((key) => location.assign(`#/tree#key=${key}`), system.apiKey);
  await prompt.click();
  await startTree(page);
  const focused = () =>
    page.evaluate(() => document.activeElement?.ariaLabel || document.activeElement?.textContent);
  const dialogs: readonly (readonly [open: () => Promise<void>, focus: string])[] = [
    [() => page.keyboard.press('n'), 'Name of this node'],
    [() => page.keyboard.press('w'), 'Text after this node'],
    [() => page.keyboard.type('1e'), 'Another text beside this node'],
    [() => page.keyboard.press('?'), 'Close'],
    [() => fileCommand(page, 'Rename tree…'), 'Name of this tree'],
    [() => fileCommand(page, 'Delete tree…'), 'Keep it'],
  ];
  for (const [open, focus] of dialogs) {
    await open();
    await page.getByRole('dialog').waitFor();
    await expect.poll(focused).toBe(focus);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
  await expect.poll(() => rows(page).count()).toBe(5);

  await page.keyboard.type('1?');
  await page.getByRole('dialog').getByText('Prune the node').click();
  await page.keyboard.press('x');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'File' }).click();
  await page.keyboard.press('x');
  await page.keyboard.press('Escape');
  await expect.poll(() => rows(page).count()).toBe(5);
  await page.keyboard.press('x');
  await expect.poll(() => rows(page).count()).toBe(4);
  await page.keyboard.press('Control+z');
  await expect.poll(() => rows(page).count()).toBe(5);

  await page.keyboard.type('1nthe fox, grand gorge x');
  await page.keyboard.press('Enter');
  await expect.poll(() => selected(page)).toBe('the fox, grand gorge x');
  await expect.poll(() => rows(page).count()).toBe(5);
  await page.keyboard.type('wand so it ended');
  await page.keyboard.press('Control+Enter');
  await expect.poll(() => selected(page)).toBe('and so it ended');
  await expect.poll(() => rows(page).count()).toBe(6);

  await page.setViewportSize({ width: 390, height: 844 });
  await fileCommand(page, 'Rename tree…');
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText('x'.repeat(120));
  await page.keyboard.press('Enter');
  await fileCommand(page, 'Delete tree…');
  const deletion = page.getByRole('dialog', { name: /^Delete/ });
  await expect.poll(() => deletion.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
});

test('with 40 branches the panes scroll, the bars stay, and in low windows of fingers there is room to read', async ({
  visit,
}) => {
  const site = await visit('/');
  const { page } = site;
  await importBranches(page, 40);
  const outside = () =>
    page.evaluate(() =>
      ['.header', '.tree-toolbar', '.node-actions', '.node-actions .button', '.branch-bar .primary']
        .flatMap((selector) => [...document.querySelectorAll(selector)])
        .filter((element) => {
          const { left, right, top, bottom } = element.getBoundingClientRect();
          return left < 0 || right > innerWidth || top < 0 || bottom > innerHeight;
        })
        .map((element) => element.className),
    );
  const scrolled = (selector: string) => page.locator(selector).evaluate((element) => element.scrollTop);
  for (const [width, height] of [
    [1440, 900],
    [1280, 800],
    [820, 1180],
    [390, 844],
  ] as const) {
    const size = `${width} × ${height}`;
    await page.setViewportSize({ width, height });
    await expect.poll(outside, { message: size }).toEqual([]);
    for (const pane of ['.outline', '.reading']) {
      await page.locator(pane).evaluate((element) => element.scrollTo(0, 0));
      await page.locator(pane).hover();
      await page.mouse.wheel(0, 600);
      await expect.poll(() => scrolled(pane), { message: size }).toBeGreaterThan(100);
      const scrolledBeside = await scrolled('main');
      expect(scrolledBeside, size).toBe(0);
      await expect.poll(outside, { message: size }).toEqual([]);
    }
    await site.screenshot(`tree-wide-${width}`);
  }
  await expect.poll(() => page.locator('.branch-text').first().textContent()).toMatch(/^↵↵ The wolf/);

  const devices = await site.context.newCDPSession(page);
  await devices.send('Emulation.setTouchEmulationEnabled', { enabled: true });
  const room = () => page.locator('.reading').evaluate((pane) => pane.clientHeight);
  for (const [width, height] of [
    [720, 450],
    [844, 390],
    [667, 375],
  ] as const) {
    await page.setViewportSize({ width, height });
    await expect.poll(room, { message: `at ${width} × ${height}` }).toBeGreaterThanOrEqual(150);
  }
});
