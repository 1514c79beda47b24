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
  test('a dialog focuses its first field or the button that changes nothing, takes all keys, and has room for a long name', async ({
    visit,
  }) => {
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

  test('a prompt that is written survives a reload until its tree is started', async ({ visit }) => {
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
  });

  test('with 40 branches the panes scroll, the bars stay, in windows of every size', async ({ visit }) => {
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
  });

  test('the graph shows each node in the middle of its children, and the keys walk it', async ({ visit }) => {
    const site = await visit('/', { width: 1440, height: 900 });
    const { page } = site;
    await startTree(page);
    await page.keyboard.type('2g');
    await rows(page).nth(8).waitFor();
    await untilGrown(page);
    const texts = await rows(page).locator('.outline-text').allTextContents();
    await page.keyboard.type('v');
    await page.locator('.graph').waitFor();
    await expect.poll(() => rows(page).locator('.outline-text').allTextContents()).toEqual(texts);
    const boxes = await rows(page).evaluateAll((nodes) =>
      nodes.map((node) => {
        const { left, top } = node.getBoundingClientRect();
        return { left, top, level: Number(node.getAttribute('aria-level')) };
      }),
    );
    const level = (at: number) => boxes.filter((box) => box.level === at);
    const middle = (list: typeof boxes) => (list[0]!.top + list.at(-1)!.top) / 2;
    expect([1, 2, 3].map((at) => level(at).length)).toEqual([1, 4, 4]);
    for (const at of [1, 2, 3]) expect(new Set(level(at).map(({ left }) => left)).size).toBe(1);
    expect(level(1)[0]!.top).toBeCloseTo(middle(level(2)));
    expect(level(2)[1]!.top).toBeCloseTo(middle(level(3)));
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => selectedRow(page).getAttribute('aria-level')).toBe('3');
    await rows(page).nth(1).click();
    await expect.poll(() => selected(page)).toBe(texts[1]);
    await site.screenshot('tree-graph');
    expect(await site.violations()).toEqual([]);
    await page.reload();
    await page.locator('.graph').waitFor();
  });
});
