import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { singleTokens } from '../../support/browser/single-tokens.ts';
import { closeAndLeave, storedText, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a king';
const textOf = (page: Page) => page.getByRole('textbox', { name: 'Text' });
const status = (page: Page) => page.getByRole('status');
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const shown = async (page: Page) => (await textOf(page).locator('.cm-line').allTextContents()).join('\n');
const popover = (page: Page) => page.getByRole('region', { name: 'Alternatives' });

/** Every tinted token: its text and its tint. */
const tints = (page: Page) =>
  textOf(page)
    .locator('.token')
    .evaluateAll((elements) => elements.map(({ textContent, className }) => `${textContent} ${className}`));

async function complete(page: Page): Promise<void> {
  await typeInto(textOf(page), PROMPT);
  await page.keyboard.press('Control+Enter');
  await status(page).getByText('Finished').waitFor();
}

/** Returns the tokens of A when a comparison has ended. */
async function comparedTokens(page: Page): Promise<Locator> {
  const options = page.getByRole('region', { name: 'Answer of A' }).getByRole('option');
  await options.nth(20).waitFor();
  await button(page, 'Stop').and(page.locator(':disabled')).waitFor();
  return options;
}

/** Waits longer than what closes by itself takes. */
const wait = (page: Page) => page.waitForTimeout(1_000);

describe('the playground, by hand', () => {
  test('undo and redo give back the tints of a completion, of typing and of an alternative, and alternatives stay with their token while the text grows', async ({
    visit,
  }) => {
    const { page } = await visit('/');
    // One sampled text of a hundred ends before its length.
    await page.getByLabel('Preset').selectOption('Most likely');
    await complete(page);
    const first = { text: await shown(page), tints: await tints(page) };
    const now = async () => ({ text: await shown(page), tints: await tints(page) });
    expect(first.tints.length).toBeGreaterThan(60);

    await page.keyboard.press('Control+Home');
    await page.keyboard.type('x');
    await expect.poll(() => tints(page)).toEqual([]);
    await button(page, 'Undo').click();
    await expect.poll(now).toEqual(first);

    await textOf(page).locator('.token').nth(5).hover();
    await popover(page).getByRole('button').first().click();
    await expect.poll(() => shown(page)).not.toBe(first.text);
    await status(page).getByText('Finished').waitFor();
    const second = await now();
    expect(second.text).not.toBe(first.text);
    await button(page, 'Undo').click();
    await expect.poll(now).toEqual(first);
    await button(page, 'Undo').click();
    await expect.poll(now).toEqual({ text: PROMPT, tints: [] });
    await button(page, 'Redo').click();
    await expect.poll(now).toEqual(first);
    await button(page, 'Redo').click();
    await expect.poll(now).toEqual(second);
    await expect.poll(() => button(page, 'Redo').isDisabled()).toBe(true);

    await textOf(page).locator('.token').nth(8).hover();
    await popover(page).waitFor();
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => shown(page)).not.toBe(second.text);
    await status(page).getByText('Finished').waitFor();
    const stayed = await Promise.all([popover(page).count(), textOf(page).locator('.selected').count()]);
    expect(stayed).toEqual([1, 1]);
  });

  test('a tap opens the alternatives, which stay until a tap elsewhere', async ({ visit }) => {
    const site = await visit('/', { width: 390, touch: true });
    const { page } = site;
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

    await page.getByRole('link', { name: 'Compare' }).tap();
    await page.getByRole('button', { name: /With and without a penalty/ }).tap();
    const options = await comparedTokens(page);
    await options.nth(3).tap();
    await wait(page);
    const stayedInCompare = await popover(page).count();
    expect(stayedInCompare).toBe(1);
  });

  test('in low windows, alternatives open without moving the text, close when a change takes their token, and fit beside it', async ({
    visit,
  }) => {
    const site = await visit('/', { height: 360, touch: true });
    const { page } = site;
    await page.getByLabel('Preset').selectOption('Most likely');
    await complete(page);
    const token = textOf(page).locator('.token').nth(8);
    const scrolled = () => textOf(page).evaluate((content) => content.parentElement!.scrollTop);
    await expect.poll(scrolled).toBeGreaterThan(40);
    await textOf(page).evaluate((content) => content.parentElement!.scrollTo(0, 20));
    await token.tap();
    await popover(page).waitFor();
    await expect.poll(scrolled).toBe(20);
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
    expect(site.consoleErrors).toEqual([]);
  });

  test('alternatives move and hide with their token when the page scrolls', async ({ visit }) => {
    const { page } = await visit('/', { height: 500 });
    await page.getByRole('link', { name: 'Compare' }).click();
    await page.getByRole('button', { name: /With and without a penalty/ }).click();
    const options = await comparedTokens(page);
    await options.nth(3).click();
    await popover(page).waitFor();
    const distance = async () => {
      const token = (await options.nth(3).locator('.token').boundingBox())!;
      const { y, height } = (await popover(page).boundingBox())!;
      return Math.round(Math.min(Math.abs(y - token.y - token.height), Math.abs(y + height - token.y)));
    };
    await expect.poll(distance).toBeLessThan(8);
    const scrolled = () => page.locator('main').evaluate((main) => main.scrollTop);
    const before = await scrolled();
    await page.mouse.move(4, 300);
    await page.mouse.wheel(0, 60);
    await expect.poll(scrolled).toBe(before + 60);
    await expect.poll(distance).toBeLessThan(8);
    await page.mouse.wheel(0, -2_000);
    await popover(page).waitFor({ state: 'hidden' });
  });

  test('line breaks of Windows stay in what the model writes, and become plain ones in pasted text', async ({
    visit,
  }) => {
    const site = await visit('/');
    const { page } = site;
    await site.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await textOf(page).click({ position: { x: 8, y: 8 } });
    await page.evaluate(() => navigator.clipboard.writeText('one\r\ntwo'));
    await page.keyboard.press('Control+v');
    const parts = ['\r\nthree', '\r\nfour'].map((text, index) => ({
      index: 0,
      text,
      finish_reason: index === 1 ? 'stop' : null,
      logprobs: { tokens: [text], token_logprobs: [-1], top_logprobs: [{}], text_offset: [7 * index] },
    }));
    const events = parts.map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`);
    const prompts: string[] = [];
    await page.route('**/v1/completions', (route) => {
      prompts.push(route.request().postDataJSON().prompt);
      return route.fulfill({ contentType: 'text/event-stream', body: `${events.join('')}data: [DONE]\n\n` });
    });
    for (const times of [1, 2]) {
      await page.keyboard.press('Control+Enter');
      await expect.poll(() => textOf(page).locator('.token').count()).toBe(2 * times);
      await status(page).getByText('Finished').waitFor();
    }
    expect(prompts).toEqual(['one\ntwo', 'one\ntwo\r\nthree\r\nfour']);
    expect(site.consoleErrors).toEqual([]);
  });

  test('controls, key caps and examples are whole, and stand at the edge of the text, in narrow and wide windows', async ({
    visit,
  }) => {
    for (const width of [390, 820]) {
      const { page } = await visit('/', { width, touch: width === 390 });
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
            return (
              needed > select.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight)
            );
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
    }

    const { page } = await visit('/');
    for (const width of [1280, 1024, 900]) {
      await page.setViewportSize({ width, height: 800 });
      const cards = page.locator('.example');
      await cards.first().waitFor();
      const lefts = await cards.evaluateAll((all) => all.map((card) => card.getBoundingClientRect().left));
      expect([1, 3], `columns at ${width} pixels`).toContain(new Set(lefts).size);
      const code = await cards.nth(1).locator('code').innerText();
      expect(code).toContain('\n    """');
      const heading = await page.getByRole('heading', { name: 'Write the beginning' }).boundingBox();
      await cards.first().click();
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
      await page.keyboard.press('Delete');
    }
  });

  test('single tokens at 680 per second change the text at most once per frame', async ({ visit }) => {
    const tokens = Array.from({ length: 1_500 }, (_, index) => ` w${index}`);
    const upstream = await singleTokens(tokens, 680);
    const { page } = await visit('/');
    await page.route('**/v1/completions', (route) => route.continue({ url: upstream.url }));
    await typeInto(textOf(page), PROMPT);
    await page.evaluate(() => {
      const counts = { changes: 0, frames: 0 };
      Reflect.set(globalThis, 'counts', counts);
      const content = document.querySelector('.text-editor')!.shadowRoot!.querySelector('.cm-content')!;
      new MutationObserver(() => (counts.changes += 1)).observe(content, { childList: true, subtree: true });
      const count = () => {
        counts.frames += 1;
        requestAnimationFrame(count);
      };
      count();
    });
    await page.keyboard.press('Control+Enter');
    await status(page).getByText('Finished').waitFor();
    const counts = await page.evaluate(() => Reflect.get(globalThis, 'counts') as Record<string, number>);
    upstream.close();
    await expect.poll(() => shown(page)).toBe(PROMPT + tokens.join(''));
    // White space before a word has no tint.
    const words = tokens.map((token) => token.trimStart());
    await expect.poll(() => textOf(page).locator('.token').allTextContents()).toEqual(words);
    // A change, and once more for its measures.
    expect(counts.changes).toBeLessThanOrEqual(2 * counts.frames! + 2);
  });

  test('two tabs keep a text, a prompt and sides each over a reload', async ({ visit, system }) => {
    const { page, context } = await visit('/');
    await typeInto(textOf(page), 'The text of the first tab');
    const other = await context.newPage();
    await other.goto(`${system.url}/#key=${system.apiKey}`);
    await typeInto(textOf(other), 'The text of the second tab');
    await typeInto(textOf(page), 'The changed text of the first tab');
    const prompt = (tab: Page) => tab.getByRole('textbox', { name: 'Prompt' });
    const tabs = [
      [page, 'The changed text of the first tab', 'first prompt'],
      [other, 'The text of the second tab', 'second prompt'],
    ] as const;
    for (const [tab, , text] of tabs) {
      await tab.getByRole('link', { name: 'Compare' }).click();
      await typeInto(prompt(tab), text);
    }
    const side = page.getByRole('region', { name: 'Settings of B' });
    const topK = side.getByRole('spinbutton', { name: 'top_k', exact: true });
    await typeInto(topK, '7');
    for (const text of tabs.flatMap(([, ...texts]) => texts))
      await expect.poll(() => storedText(page)).toContain(text);
    for (const [tab] of tabs) await tab.reload();
    for (const [tab, , text] of tabs) await expect.poll(() => prompt(tab).inputValue()).toBe(text);
    await expect.poll(() => topK.inputValue()).toBe('7');
    for (const [tab, text] of tabs) {
      await tab.getByRole('link', { name: 'Playground' }).click();
      await expect.poll(() => shown(tab)).toBe(text);
    }
    await closeAndLeave(other);
    const third = await context.newPage();
    await third.goto(`${system.url}/#key=${system.apiKey}`);
    await expect.poll(() => shown(third)).toBe('The text of the second tab');
  });

  test('a text goes to Tree, with a branch to Compare, which sends nothing while a dialog is open, with an answer back, and undo keeps the first text', async ({
    visit,
  }) => {
    const site = await visit('/');
    const { page } = site;
    await typeInto(textOf(page), PROMPT);
    await button(page, 'More').click();
    await button(page, 'Open in Tree').click();
    const reading = page.locator('.reading-text');
    await expect.poll(() => reading.textContent()).toBe(PROMPT);
    await page.keyboard.press('g');
    await page.getByRole('treeitem').nth(4).waitFor();
    await button(page, 'Stop').and(page.locator(':disabled')).waitFor();
    await page.keyboard.press('1');
    await expect.poll(() => reading.textContent()).not.toBe(PROMPT);
    const branch = (await reading.textContent())!;
    expect(branch.length).toBeGreaterThan(PROMPT.length);

    await button(page, 'File').click();
    await button(page, 'Open in Compare').click();
    const prompt = page.getByRole('textbox', { name: 'Prompt' });
    await expect.poll(() => prompt.inputValue()).toBe(branch);
    const sent = () => site.requestedUrls.filter((url) => url.endsWith('/v1/completions')).length;
    const before = sent();
    await page.getByRole('button', { name: /^Key/ }).click();
    await page.locator('input[type=password]:focus').waitFor();
    await page.keyboard.press('Control+Enter');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await prompt.press('Control+Enter');
    const answer = page.getByRole('region', { name: 'Answer of A' });
    // A token of line breaks has no width, so it counts as hidden.
    await answer.getByRole('option').first().waitFor({ state: 'attached' });
    await button(page, 'Stop').and(page.locator(':disabled')).waitFor();
    // One for each side.
    expect(sent() - before).toBe(2);
    const answered = await answer.getByRole('option').allTextContents();
    await button(page, 'Open A in').click();
    await button(page, 'Open in Playground').locator('visible=true').click();
    await expect.poll(() => shown(page)).toBe(branch + answered.join(''));
    await expect.poll(() => textOf(page).locator('.token').count()).toBeGreaterThan(10);
    await button(page, 'Undo').click();
    await expect.poll(() => shown(page)).toBe(PROMPT);
  });
});
