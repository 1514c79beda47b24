import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { sharedVisit, siteTest as test } from '../../support/browser/site-test.ts';

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

const site = sharedVisit('/');

test('a written prompt survives a reload until its tree is started', async () => {
  const { page } = site;
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

test('a dialog focuses its first field, or the button that changes nothing', async ({ system }) => {
  const { page } = site;
  await page.evaluate((key) => location.assign(`#/tree#key=${key}`), system.apiKey);
  await page.getByRole('textbox', { name: 'Prompt' }).click();
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
});

test('an open dialog and menu take all keys', async () => {
  const { page } = site;
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
});

test('a dialog has room for a long name', async () => {
  const { page } = site;
  await page.setViewportSize({ width: 390, height: 844 });
  await fileCommand(page, 'Rename tree…');
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText('x'.repeat(120));
  await page.keyboard.press('Enter');
  await fileCommand(page, 'Delete tree…');
  const deletion = page.getByRole('dialog', { name: /^Delete/ });
  await expect.poll(() => deletion.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
});
