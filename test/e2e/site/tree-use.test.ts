import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a king';

const rows = (page: Page) => page.getByRole('treeitem');
const selectedRow = (page: Page) => page.locator('[role=treeitem][aria-selected=true]');
const selected = (page: Page) => selectedRow(page).locator('.outline-text').textContent();
const untilGrown = (page: Page) =>
  page.getByRole('button', { name: 'Stop' }).and(page.locator(':disabled')).waitFor();

/** Opens the view and starts a tree with four branches, by keys. */
async function startTree(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Tree' }).click();
  await page.getByRole('heading', { name: 'Tree', exact: true }).waitFor();
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

describe('the tree view, by hand', () => {
  test('a name that has spaces and keys of the view is typed at once, and names the node', async ({
    visit,
  }) => {
    const { page } = await visit('/');
    await startTree(page);
    await page.keyboard.type('1nthe fox, grand gorge x');
    await page.keyboard.press('Enter');
    await expect.poll(() => selected(page)).toBe('the fox, grand gorge x');
    expect(await rows(page).count()).toBe(5);
    await page.keyboard.type('wand so it ended');
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => selected(page)).toBe('and so it ended');
    expect(await rows(page).count()).toBe(6);
  });

  test('every dialog focuses its first field, or the button that changes nothing', async ({ visit }) => {
    const { page } = await visit('/');
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
      expect(await focused()).toBe(focus);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    expect(await rows(page).count()).toBe(5);
  });

  test('while a dialog or a menu is open, keys of the view do nothing', async ({ visit }) => {
    const { page } = await visit('/');
    await startTree(page);
    await page.keyboard.type('1?');
    await page.getByRole('dialog').getByText('Prune the node').click();
    await page.keyboard.press('x');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'File' }).click();
    await page.keyboard.press('x');
    expect(await rows(page).count()).toBe(5);
    await page.keyboard.press('Escape');
    await page.keyboard.press('x');
    expect(await rows(page).count()).toBe(4);
    await page.keyboard.press('Control+z');
    expect(await rows(page).count()).toBe(5);
  });

  test.for([
    { width: 1440, height: 900 },
    { width: 1280, height: 800 },
    { width: 820, height: 1180 },
    { width: 390, height: 844 },
  ])('with 40 branches the panes scroll, the bars stay: $width × $height', async (size, { visit }) => {
    const site = await visit('/', size);
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
    expect(await outside()).toEqual([]);
    for (const pane of ['.outline', '.reading']) {
      await page.locator(pane).hover();
      await page.mouse.wheel(0, 600);
      await expect.poll(() => scrolled(pane)).toBeGreaterThan(100);
      expect(await scrolled('main')).toBe(0);
      expect(await outside()).toEqual([]);
    }
    await site.screenshot('tree-wide');
    const [first] = await page.locator('.branch-text').allTextContents();
    expect(first).toMatch(/^↵↵ The wolf/);
  });
});
