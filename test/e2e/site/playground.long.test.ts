import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import * as z from 'zod';
import { storedText, typeInto } from '../../support/browser/site-page.ts';
import { sharedVisit, siteTest as test } from '../../support/browser/site-test.ts';
import {
  button,
  complete,
  PROMPT,
  popover,
  shown,
  status,
  textOf,
  withLateTimers,
} from './playground-page.ts';

/** Every tinted token: its text and its tint. */
const tints = (page: Page) =>
  textOf(page)
    .locator('.token')
    .evaluateAll((elements) => elements.map(({ textContent, className }) => `${textContent} ${className}`));

/** Returns the tokens of A when a comparison has ended. */
async function comparedTokens(page: Page): Promise<Locator> {
  const options = page.getByRole('region', { name: 'Answer of A' }).getByRole('option');
  await options.nth(20).waitFor();
  await button(page, 'Stop').and(page.locator(':disabled')).waitFor();
  return options;
}

/** Waits longer than what closes by itself takes. */
const wait = (page: Page) => page.waitForTimeout(1_000);

test('the text is continued in place, token by token, or at a mark, one undo takes the completion back, a parameter that cannot be read gets the focus in its place, and a stop frees the slot', async ({
  visit,
  system,
}) => {
  const { page } = await visit('/');
  await page.getByLabel('Preset').selectOption('Most likely');
  const length = page.getByLabel('max_tokens', { exact: true });
  // Long enough for many frames of a busy machine.
  await typeInto(length, '400');
  await page.locator('summary', { hasText: 'Tokens' }).click();
  await page.getByLabel('ignore_eos', { exact: true }).selectOption('true');
  await typeInto(textOf(page), PROMPT);
  const lengths = await page.evaluateHandle(() => [] as number[]);
  await page.evaluate((seen) => {
    const root = document.querySelector('.text-editor')!.shadowRoot!;
    new MutationObserver(() => seen.push(root.querySelectorAll('.token').length)).observe(root, {
      childList: true,
      subtree: true,
    });
  }, lengths);
  await button(page, 'Complete').click();
  await status(page).getByText('Finished: length').waitFor();
  const counts = await lengths.jsonValue();
  expect(new Set(counts).size).toBeGreaterThan(5);
  expect(counts.at(-1)).toBeGreaterThan(60);
  await expect.poll(() => shown(page)).toMatch(new RegExp(`^${PROMPT}`));
  await textOf(page).press('Control+z');
  await expect.poll(() => shown(page)).toBe(PROMPT);

  await typeInto(length, '12');
  await textOf(page).press('Control+End');
  for (let index = 0; index < ' a king'.length; index += 1) await page.keyboard.press('ArrowLeft');
  await button(page, 'Insert at cursor').click();
  const sent = page.waitForRequest((request) => request.url().endsWith('/v1/completions'));
  await page.keyboard.press('Control+Enter');
  const [before, after] = [PROMPT.slice(0, -' a king'.length), ' a king'];
  expect((await sent).postDataJSON()).toMatchObject({ prompt: before, suffix: after });
  await status(page).getByText('Finished').waitFor();
  const infilled = (await shown(page)).replace('insert here', '');
  expect([infilled.startsWith(before), infilled.endsWith(after)]).toEqual([true, true]);
  expect(infilled.length).toBeGreaterThan(PROMPT.length);

  await typeInto(length, '19x');
  await textOf(page).press('Control+Enter');
  await expect.poll(() => length.evaluate((control) => control === document.activeElement)).toBe(true);
  await typeInto(length, '1900');
  await button(page, 'Complete').click();
  await status(page).getByText('Streaming').waitFor();
  await expect.poll(() => runningSequences(system)).toBe(1);
  await page.keyboard.press('Escape');
  await status(page).getByText('Stopped').waitFor();
  await expect.poll(() => runningSequences(system)).toBe(0);
});

const textAndTints = async (page: Page) => ({ text: await shown(page), tints: await tints(page) });

describe('in a window of 820 pixels', () => {
  const site = sharedVisit('/', { width: 820 });

  test('controls and examples are whole', async () => {
    const { page } = site;
    await expectWholeControls(page);
    await expectWholeExamples(page);
  });

  test('an edit takes the tints, and undo gives them back', async () => {
    const { page } = site;
    // One sampled text of a hundred ends before its length.
    await page.getByLabel('Preset').selectOption('Most likely');
    await typeInto(page.getByLabel('max_tokens', { exact: true }), '40');
    await complete(page);
    const first = await textAndTints(page);
    expect(first.tints.length).toBeGreaterThan(20);

    await page.keyboard.press('Control+Home');
    await page.keyboard.type('x');
    await expect.poll(() => tints(page)).toEqual([]);
    await button(page, 'Undo').click();
    await expect.poll(() => textAndTints(page)).toEqual(first);
  });

  test('an alternative has a token id and takes the place of the token, over undo and redo', async ({
    system,
  }) => {
    const { page } = site;
    const now = () => textAndTints(page);
    const first = await now();
    const fifth = textOf(page).locator('.token').nth(5);
    await fifth.hover();
    const [written] = (await fifth.allTextContents()) as [string];
    const before = first.text.slice(0, first.text.indexOf(` ${written}`, PROMPT.length));
    const other = popover(page).getByRole('button').first();
    const name = (await other.locator('code').textContent())!.replaceAll('·', ' ');
    const id = Number((await other.locator('.id').textContent())!.replace('id ', ''));
    const nameOfId = await detokenized(system, id);
    expect(nameOfId).toBe(name);
    await other.click();
    await expect.poll(() => shown(page)).toContain(before + name);
    await status(page).getByText('Finished').waitFor();
    await expect.poll(async () => (await shown(page)).length).toBeGreaterThan((before + name).length + 20);
    const second = await now();
    await button(page, 'Undo').click();
    await expect.poll(now).toEqual(first);
    await button(page, 'Undo').click();
    await expect.poll(now).toEqual({ text: PROMPT, tints: [] });
    await button(page, 'Redo').click();
    await expect.poll(now).toEqual(first);
    await button(page, 'Redo').click();
    await expect.poll(now).toEqual(second);
    await expect.poll(() => button(page, 'Redo').isDisabled()).toBe(true);
  });

  test('alternatives stay open while the text is completed', async () => {
    const { page } = site;
    const before = await shown(page);
    await textOf(page).locator('.token').nth(8).hover();
    await popover(page).waitFor();
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => shown(page)).not.toBe(before);
    await status(page).getByText('Finished').waitFor();
    const stayed = await Promise.all([popover(page).count(), textOf(page).locator('.selected').count()]);
    expect(stayed).toEqual([1, 1]);
  });

  test('a reload keeps all but the key', async () => {
    const { page } = site;
    await page.keyboard.press('Escape');
    await popover(page).waitFor({ state: 'detached' });
    const kept = await textOf(page).innerHTML();
    await expect.poll(() => storedText(page)).toContain(JSON.stringify(await shown(page)).slice(1, -1));
    await page.reload();
    await expect.poll(() => textOf(page).innerHTML()).toBe(kept);
    await button(page, 'Complete').click();
    await page.getByText('This page has no API key').waitFor();
  });
});

test('with fingers, controls are whole, low windows show lines of the text, and a tap opens the alternatives, which stay until a tap elsewhere, fit beside their token in low windows, and move and hide with it', async ({
  visit,
}) => {
  const site = await visit('/', { width: 390, touch: true });
  const { page } = site;
  await expectWholeControls(page);
  await complete(page);
  const token = textOf(page).locator('.token').nth(8);
  await token.tap();
  await popover(page).waitFor();
  await wait(page);
  await site.screenshot('tap');
  const stayed = await popover(page).count();
  expect(stayed).toBe(1);
  await page.getByText('TTFT').tap();
  await popover(page).waitFor({ state: 'detached' });
  await token.tap();
  const before = await shown(page);
  await popover(page).getByRole('button').first().tap();
  await expect.poll(() => shown(page)).not.toBe(before);
  await status(page).getByText('Finished').waitFor();

  for (const [width, height] of [
    [844, 390],
    [640, 400],
    [320, 256],
  ] as const) {
    await page.setViewportSize({ width, height });
    await token.scrollIntoViewIfNeeded();
    const editor = page.locator('.text-editor');
    await expect.poll(async () => (await editor.boundingBox())!.height).toBeGreaterThan(56);
    await button(page, 'Complete').scrollIntoViewIfNeeded();
    await expect.poll(async () => (await button(page, 'Complete').boundingBox())!.y).toBeLessThan(height);
  }
  await page.setViewportSize({ width: 1280, height: 360 });
  await page.getByLabel('Preset').selectOption('Most likely');
  await complete(page);
  const scrolledText = () => textOf(page).evaluate((content) => content.parentElement!.scrollTop);
  await expect.poll(scrolledText).toBeGreaterThan(40);
  await textOf(page).evaluate((content) => content.parentElement!.scrollTo(0, 20));
  await token.tap();
  await popover(page).waitFor();
  await expect.poll(scrolledText).toBe(20);
  await typeInto(textOf(page), PROMPT);
  await popover(page).waitFor({ state: 'detached' });

  await page.setViewportSize({ width: 1280, height: 480 });
  await typeInto(textOf(page), 'A 😀');
  await button(page, 'Score text').click();
  const several = textOf(page).locator('.token', { hasText: '😀' });
  await several.hover();
  await popover(page).getByText('f0').first().waitFor();
  const { y, height } = (await popover(page).boundingBox())!;
  const character = (await several.boundingBox())!;
  expect(y).toBeGreaterThan(character.y + character.height - 8);
  expect(y + height).toBeLessThanOrEqual(480);

  await page.setViewportSize({ width: 1280, height: 500 });
  await page.getByRole('link', { name: 'Compare' }).tap();
  await page.getByRole('button', { name: /With and without a penalty/ }).tap();
  const options = await comparedTokens(page);
  await options.nth(3).tap();
  await wait(page);
  const stayedInCompare = await popover(page).count();
  expect(stayedInCompare).toBe(1);
  const distance = async () => {
    const box = (await options.nth(3).locator('.token').boundingBox())!;
    const over = (await popover(page).boundingBox())!;
    const gaps = [over.y - box.y - box.height, over.y + over.height - box.y];
    return Math.round(Math.min(...gaps.map(Math.abs)));
  };
  await expect.poll(distance).toBeLessThan(8);
  const scrolled = () => page.locator('main').evaluate((main) => main.scrollTop);
  const top = await scrolled();
  await page.mouse.move(4, 300);
  await page.mouse.wheel(0, 60);
  await expect.poll(scrolled).toBe(top + 60);
  await expect.poll(distance).toBeLessThan(8);
  await page.mouse.wheel(0, -2_000);
  await popover(page).waitFor({ state: 'hidden' });
  expect(site.consoleErrors).toEqual([]);
});

/** Expects examples in columns at the edge of the text, at several widths, in an empty playground. */
async function expectWholeExamples(page: Page): Promise<void> {
  for (const width of [1024, 900, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    const cards = page.locator('.example');
    await cards.first().waitFor();
    const lefts = await cards.evaluateAll((all) => all.map((card) => card.getBoundingClientRect().left));
    expect([1, 3], `columns at ${width} pixels`).toContain(new Set(lefts).size);
    const code = await cards.nth(1).locator('code').innerText();
    expect(code).toContain('\n    """');
    const heading = await page.getByRole('heading', { name: 'Write the beginning' }).boundingBox();
    await cards.first().click();
    await expect.poll(() => shown(page)).not.toBe('');
    const textLeft = await page
      .locator('.cm-line')
      .first()
      .evaluate((line) => {
        const range = document.createRange();
        range.selectNodeContents(line);
        return range.getBoundingClientRect().left;
      });
    expect(Math.abs(textLeft - heading!.x), `edge at ${width} pixels`).toBeLessThan(2);
    await typeInto(textOf(page), '');
  }
}

/** @param page an empty playground */
async function expectWholeControls(page: Page): Promise<void> {
  await textOf(page).waitFor();
  await button(page, 'Key accepted').waitFor();
  const primary = button(page, 'Complete');
  await expect.poll(() => primary.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  await expect.poll(() => page.locator('.key-state').boundingBox()).toMatchObject({ width: 8 });
  const hidden = await page.evaluate(() =>
    [...document.querySelectorAll('select')]
      .filter((select) => select.checkVisibility())
      .filter((select) => {
        const { font, paddingLeft, paddingRight } = getComputedStyle(select);
        const context = document.createElement('canvas').getContext('2d')!;
        context.font = font;
        const { width: needed } = context.measureText(select.selectedOptions[0]!.text);
        return needed > select.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
      })
      .map(({ ariaLabel }) => ariaLabel),
  );
  expect(hidden).toEqual([]);
  await page.locator('.example').first().waitFor();
  await page.keyboard.press('?');
  await page.locator('kbd').first().waitFor();
  const heights = await page
    .locator('kbd')
    .evaluateAll((caps) => caps.map((cap) => cap.getBoundingClientRect().height));
  expect(Math.max(...heights)).toBeLessThan(24);
  await page.keyboard.press('Escape');
}

test('a wrong schema is marked at its place, nothing unchecked can be used, also with late timers, and a right one constrains the text', async ({
  visit,
  system,
}) => {
  const site = await visit('/');
  const { page } = site;
  await withLateTimers(site, 2_000);
  await page.evaluate((key) => location.assign(`#key=${key}`), system.apiKey);
  await typeInto(textOf(page), 'A king as JSON:');
  await page.locator('summary', { hasText: 'Constraint' }).press('Enter');
  await page.getByRole('button', { name: 'Edit schema' }).press('Enter');
  const dialog = page.getByRole('dialog');
  const editor = dialog.getByRole('textbox', { name: 'Constraint' });
  const verdict = dialog.getByRole('status');
  const use = dialog.getByRole('button', { name: 'Use this constraint' });
  await verdict.getByText('Valid').waitFor();
  await editor.press('x');
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

  await dialog.getByRole('radio', { name: 'JSON Schema' }).press('Space');
  await typeInto(editor, '{"type": "object", "properties": {"a": {"type": "strin"}}}');
  await dialog.getByText('#/properties/a/type').waitFor();
  await expect.poll(() => editor.locator('.cm-lintRange-error').textContent()).toBe('"strin"');
  await typeInto(editor, '{"enum": ["Arthur"]}');
  await verdict.getByText('Valid').waitFor();
  await use.click();
  await button(page, 'Complete').click();
  await status(page).getByText('Finished: stop').waitFor();
  await expect.poll(() => shown(page)).toMatch(/^A king as JSON:\s*"Arthur"$/);
});

async function detokenized({ url, apiKey }: { url: string; apiKey: string }, id: number): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${url}/detokenize`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ tokens: [id] }),
  });
  return z.object({ prompt: z.string() }).parse(await response.json()).prompt;
}

/** Returns how many sequences the origin generates, by its metrics. */
async function runningSequences({ metricsUrl }: { readonly metricsUrl: string }): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  return Number(/^continuo_origin_running_sequences\S* (\d+)/m.exec(text)?.[1]);
}
