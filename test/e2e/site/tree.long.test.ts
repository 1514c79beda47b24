import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { closeAndLeave, type SitePage, typeInto } from '../../support/browser/site-page.ts';
import { sharedVisit, siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a king';
/** Longer than two chunks of the prefix cache. */
const LONG_PROMPT = 'The king had a daughter, and the daughter had a golden ball. '.repeat(8);

const branch = (page: Page) => page.getByRole('button', { name: /^Branch( at token)?$/ }).click();
/** Tokens of the selected node. */
const tokensOf = (page: Page) => page.locator('.reading-text').getByRole('option');
const rows = (page: Page) => page.getByRole('treeitem');
const selectedRow = (page: Page) => page.locator('[role=treeitem][aria-selected=true]');
/** Text from the root to the selected node. */
const reading = (page: Page) => page.locator('.reading-text').textContent();
const untilGrown = (page: Page) =>
  page.getByRole('button', { name: 'Stop' }).and(page.locator(':disabled')).waitFor();
const openTrees = (page: Page) => page.getByRole('link', { name: 'Tree' }).click();

async function startTree(page: Page, prompt: string, n: number): Promise<void> {
  await openTrees(page);
  await typeInto(page.getByRole('textbox', { name: 'Prompt' }), prompt);
  await page.getByRole('button', { name: 'Start the tree' }).click();
  await rows(page).nth(n).waitFor();
  await untilGrown(page);
}

async function importFile(page: Page, text: string): Promise<void> {
  const file = path.join(tmpdir(), `${crypto.randomUUID()}.json`);
  writeFileSync(file, text);
  const chooser = page.waitForEvent('filechooser');
  const first = page.getByRole('button', { name: 'Import a tree…' });
  const menu = page.getByRole('button', { name: 'File' });
  await first.or(menu).click();
  if (await menu.isVisible()) await page.getByRole('button', { name: 'Import JSON…' }).click();
  await (await chooser).setFiles(file);
}

async function exported(page: Page, as: 'JSON' | 'Markdown'): Promise<string> {
  await page.getByRole('button', { name: 'File' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: `Export as ${as}` }).click();
  return readFileSync(await (await download).path(), 'utf8');
}

/** A tree in which every node has four children. */
const bigTree = (size: number) =>
  JSON.stringify({
    format: 'continuo-tree',
    version: 1,
    name: 'big',
    nodes: Array.from({ length: size }, (_, index) => ({
      parent: index === 0 ? null : Math.floor((index - 1) / 4),
      text: ` node ${index}`,
    })),
  });

/** The node in the last row of such a tree. */
function lastNode(size: number): number {
  let last = 0;
  while (4 * last + 1 < size) last = Math.min(4 * last + 4, size - 1);
  return last;
}

/** A tree whose root has children with long texts that begin with blank lines. */
function wideTree(count: number): string {
  const text = `\n\n${'The wolf went to the deep forest and slept there. '.repeat(12)}`;
  const nodes = Array.from({ length: count }, (_, index) => ({ parent: 0, text: `${text}${index}` }));
  const tree = { format: 'continuo-tree', version: 1, name: 'wide' };
  return JSON.stringify({ ...tree, nodes: [{ parent: null, text: PROMPT }, ...nodes] });
}

/** Panes scroll, bars stay, and in low windows of fingers there is room. */
async function expectRoomToRead({ page, context, screenshot }: SitePage): Promise<void> {
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
    await screenshot(`tree-wide-${width}`);
  }
  await expect.poll(() => page.locator('.branch-text').first().textContent()).toMatch(/^↵↵ The wolf/);

  const devices = await context.newCDPSession(page);
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
}

test('trees are exported and imported equal, kept side by side, and deleted, and another file is refused', async ({
  visit,
}) => {
  const { page } = await visit('/');
  await startTree(page, PROMPT, 4);
  const first = await exported(page, 'JSON');
  const { nodes } = JSON.parse(first) as { nodes: { logprobs?: { tokens: string[] } }[] };
  expect(nodes.map(({ logprobs }) => (logprobs?.tokens.length ?? 0) > 0)).toEqual([
    false,
    ...[true, true, true, true],
  ]);
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await importFile(page, bigTree(3).replace('"parent":0', '"parent":7'));
  const refused = page.getByRole('dialog', { name: 'This file cannot be imported' });
  await refused
    .getByText('nodes[1].parent is 7, but must be the index of an earlier node, 0 to 0.')
    .waitFor();
  await page.keyboard.press('Escape');
  await refused.waitFor({ state: 'detached' });
  await importFile(page, first);
  await rows(page).nth(4).waitFor();
  const second = await exported(page, 'JSON');
  expect(second).toBe(first);
  const markdown = await exported(page, 'Markdown');
  expect(markdown).toContain(PROMPT);

  await importFile(page, bigTree(301));
  const trees = page.getByRole('combobox', { name: 'Tree' });
  const names = () => trees.locator('option').allTextContents();
  await expect.poll(names).toContain('big (301)');
  const big = await exported(page, 'JSON');
  await importFile(page, big);
  await expect.poll(async () => (await names()).length).toBe(4);
  const bigAgain = await exported(page, 'JSON');
  expect(bigAgain).toBe(big);
  await trees.selectOption({ label: `${PROMPT} (5)` });
  await expect.poll(() => rows(page).count()).toBe(5);
  await page.getByRole('button', { name: 'File' }).click();
  await page.getByRole('button', { name: 'Delete tree…' }).click();
  await page.getByRole('button', { name: 'Delete the tree' }).click();
  await expect.poll(async () => (await names()).length).toBe(3);
  const left = await names();
  expect(left.toSorted()).toEqual([`${PROMPT} (5)`, 'big (301)', 'big (301)'].toSorted());
});

test('keys walk, branch at a token, name, prune, undo and redo', async ({ visit }) => {
  const { page, consoleErrors } = await visit('/');
  await startTree(page, PROMPT, 4);
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const texts = await rows(page).locator('.outline-text').allTextContents();
  const selected = () => selectedRow(page).locator('.outline-text').textContent();
  await press('2');
  await expect.poll(selected).toBe(texts[2]);
  await press('j');
  await expect.poll(selected).toBe(texts[3]);
  await press('k', 'k');
  await expect.poll(selected).toBe(texts[1]);
  await press('h');
  await expect.poll(selected).toBe(texts[0]);
  await press('l');
  await expect.poll(selected).toBe(texts[1]);
  await press('ArrowDown', 'ArrowDown');
  await expect.poll(selected).toBe(texts[3]);

  await press(']', ']');
  const branchButton = page.getByRole('button', { name: /^Branch( at token)?$/ });
  const alternatives = page.getByRole('region', { name: 'Alternatives' });
  const ofToken = async () => [await branchButton.textContent(), await alternatives.count()];
  await expect.poll(ofToken).toEqual(['Branch at token', 1]);
  // A selected token is one of the selected node.
  await press('k');
  await expect.poll(ofToken).toEqual(['Branch', 0]);
  await press('j', ']', ']', ']');
  const tokens = await tokensOf(page).allTextContents();
  const before = PROMPT + tokens.slice(0, 2).join('');
  const selectedToken = tokensOf(page).and(page.locator('[aria-selected=true]'));
  await expect.poll(() => selectedToken.textContent()).toBe(tokens[2]);
  await press('g');
  await untilGrown(page);
  await expect.poll(() => reading(page)).toBe(before);
  await page.getByRole('heading', { name: '5 branches' }).waitFor();

  await press('1', 'n');
  await typeInto(page.getByRole('textbox', { name: 'Name of this node' }), 'the old end');
  await press('Enter');
  await expect.poll(selected).toBe('the old end');
  await press('b', 'h');
  await expect.poll(selected).not.toBe('the old end');
  await press('m');
  await expect.poll(selected).toBe('the old end');
  await press('x');
  await expect.poll(() => page.getByText('the old end').count()).toBe(0);
  await press('Control+z');
  await expect.poll(selected).toBe('the old end');
  await press('Control+Shift+Z');
  await expect.poll(() => page.getByText('the old end').count()).toBe(0);

  await press('w');
  await typeInto(page.getByRole('textbox', { name: 'Text after this node' }), ' The end.');
  await press('Control+Enter');
  await expect.poll(() => reading(page)).toMatch(/ The end\.$/);
  await press('Home', ' ');
  await expect.poll(() => rows(page).count()).toBe(1);
  await press('?');
  await page.getByRole('dialog', { name: 'Keys' }).getByText('Prune the node').waitFor();
  expect(consoleErrors).toEqual([]);
});

test('a branch reuses the prefix of its parent, an alternative starts branches, a reload keeps all of it, and a second tab overwrites nothing', async ({
  visit,
  system,
}) => {
  const { page, context } = await visit('/');
  await startTree(page, LONG_PROMPT, 4);
  await page.keyboard.press('2');
  await branch(page);
  await untilGrown(page);
  await page.keyboard.press('1');
  await expect.poll(() => selectedRow(page).getAttribute('aria-level')).toBe('3');
  const figures = await page.locator('.node-figures').textContent();
  const [, cached, all] = /(\d+) of (\d+) prompt tokens cached/.exec(figures!) ?? [];
  expect(Number(cached)).toBeGreaterThan(Number(all) / 2);

  await page.keyboard.press('Home');
  await page.keyboard.press('1');
  const tokens = await tokensOf(page).allTextContents();
  // A line break is too narrow to point at.
  const index = tokens.findIndex((token, at) => at > 1 && /\w/.test(token));
  await tokensOf(page).nth(index).hover();
  const other = page.getByRole('region', { name: 'Alternatives' }).getByRole('button').first();
  const name = (await other.locator('code').textContent())!.replaceAll('·', ' ');
  const request = page.waitForRequest('**/v1/completions');
  await other.click();
  const { prompt } = (await request).postDataJSON() as { prompt: string };
  expect(prompt.replaceAll('\n', '')).toBe(
    (LONG_PROMPT + tokens.slice(0, index).join('') + name).replaceAll('\n', ''),
  );
  await untilGrown(page);
  await expect.poll(() => reading(page)).toBe(prompt);
  await page.getByRole('heading', { name: '4 branches' }).waitFor();

  await page.keyboard.press('3');
  await page.keyboard.press('n');
  await typeInto(page.getByRole('textbox', { name: 'Name of this node' }), 'kept');
  await page.keyboard.press('Enter');
  await rows(page).getByText('kept').waitFor();
  const shown = async () => ({ rows: await rows(page).allTextContents(), text: await reading(page) });
  const before = await shown();
  await page.goto('about:blank');
  await page.goto(`${system.url}/#/tree#key=${system.apiKey}`);
  await expect.poll(shown).toEqual(before);

  const second = await context.newPage();
  await second.goto(`${system.url}/#/tree#key=${system.apiKey}`);
  await second.getByRole('alert').getByText('is open in another tab').waitFor();
  await expect.poll(() => rows(second).count()).toBe(0);
  await branch(page);
  await untilGrown(page);
  const grown = await rows(page).allTextContents();
  expect(grown.length).toBeGreaterThan(before.rows.length);
  await closeAndLeave(page);
  const trees = second.getByRole('combobox', { name: 'Tree' });
  await trees.selectOption(await trees.locator('option').nth(1).getAttribute('value'));
  await expect.poll(() => rows(second).allTextContents()).toEqual(grown);
  await second.getByRole('alert').waitFor({ state: 'detached' });
  await branch(second);
  await untilGrown(second);
  const last = await rows(second).allTextContents();
  expect(last.length).toBeGreaterThan(grown.length);
  await second.reload();
  await expect.poll(() => rows(second).allTextContents()).toEqual(last);
});

describe('the graph', () => {
  const site = sharedVisit('/', { width: 1440, height: 900 });

  test('shows each node in the middle of its children', async () => {
    const { page } = site;
    await startTree(page, PROMPT, 4);
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
    await expect.poll(() => selectedRow(page).locator('.outline-text').textContent()).toBe(texts[1]);
    await site.screenshot('tree-graph');
    expect(await site.violations()).toEqual([]);
    await page.reload();
    await page.locator('.graph').waitFor();
  });

  test('and the outline render only the visible ones of 10,000 nodes', async () => {
    const { page } = site;
    await rows(page).nth(8).waitFor();
    await page.keyboard.press('v');
    await page.locator('.graph').waitFor({ state: 'detached' });
    const last = `node ${lastNode(10_000)}`;
    await importFile(page, bigTree(10_000));
    await rows(page).first().getByText('node 0').waitFor();
    const elements = () => page.evaluate(() => document.querySelectorAll('*').length);
    await expect.poll(() => rows(page).count()).toBeLessThan(50);
    await expect.poll(elements).toBeLessThan(1_000);
    const outline = page.getByRole('tree');
    await outline.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await rows(page).filter({ hasText: last }).waitFor();
    await expect.poll(elements).toBeLessThan(1_000);
    await page.keyboard.press('End');
    await selectedRow(page).filter({ hasText: last }).waitFor();
    const id = (await selectedRow(page).getAttribute('id'))!;
    await expect.poll(() => outline.getAttribute('aria-activedescendant')).toBe(id);

    await page.keyboard.press('Home');
    await page.keyboard.press('v');
    const graph = page.locator('.graph');
    await graph.getByRole('treeitem').first().waitFor();
    await expect.poll(() => rows(page).count()).toBeLessThan(60);
    await page.keyboard.press('End');
    await selectedRow(page).filter({ hasText: last }).waitFor();
    await expect.poll(() => rows(page).count()).toBeLessThan(60);
    await graph.hover();
    await page.mouse.wheel(0, -2_000);
    await expect.poll(() => selectedRow(page).count()).toBe(0);
  });

  test('with 40 branches, panes scroll, bars stay, and there is room to read', async () => {
    const { page } = site;
    await page.keyboard.press('v');
    await page.locator('.graph').waitFor({ state: 'detached' });
    await importFile(page, wideTree(40));
    await page.locator('.branch-text', { hasText: 'The wolf' }).first().waitFor();
    await expectRoomToRead(site);
  });
});
