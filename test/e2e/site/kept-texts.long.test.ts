import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { singleTokens } from '../../support/browser/single-tokens.ts';
import { closeAndLeave, storedText, typeInto } from '../../support/browser/site-page.ts';
import { sharedVisit, siteTest as test } from '../../support/browser/site-test.ts';
import { button, PROMPT, shown, status, textOf } from './playground-page.ts';

const words = (count: number) => Array.from({ length: count }, (_, index) => ` w${index}`);

test('a long text changes at most once per frame, gives way to what is typed over it, is stored while streamed, and survives a reload at its last token', async ({
  visit,
  onTestFinished,
}) => {
  const [slow, fast] = [words(1_500), words(20_000)];
  const upstreams = [await singleTokens(slow, 680), await singleTokens(fast, 8_000)];
  onTestFinished(async () => {
    for (const upstream of upstreams) await upstream.stop();
  });
  const { page } = await visit('/');
  let sent = 0;
  await page.route('**/v1/completions', (route) => route.continue({ url: upstreams[sent++]!.url }));
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
  await expect.poll(() => storedText(page)).toContain(`${PROMPT} w0 w1`);
  const phase = await status(page).textContent();
  expect(phase).toBe('Streaming');
  await status(page).getByText('Finished').waitFor();
  const counts = await page.evaluate(() => Reflect.get(globalThis, 'counts') as Record<string, number>);
  await expect.poll(() => shown(page)).toBe(PROMPT + slow.join(''));
  // White space before a word has no tint.
  const tinted = slow.map((token) => token.trimStart());
  await expect.poll(() => textOf(page).locator('.token').allTextContents()).toEqual(tinted);
  // A change, and once more for its measures.
  expect(counts.changes).toBeLessThanOrEqual(2 * counts.frames! + 2);

  await textOf(page).click({ position: { x: 8, y: 8 } });
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.press('N');
  await expect.poll(() => shown(page)).toBe('N');
  await page.keyboard.press('ControlOrMeta+z');
  await expect.poll(() => shown(page)).toBe(PROMPT + slow.join(''));
  await typeInto(textOf(page), PROMPT);
  const reloaded = page.waitForEvent('load');
  await page.evaluate(() => {
    const line = document.querySelector('[role=status]')!;
    let streams = false;
    new MutationObserver(() => {
      streams ||= line.textContent.startsWith('Streaming');
      if (streams && line.textContent.startsWith('Finished')) location.reload();
    }).observe(line, { childList: true, characterData: true, subtree: true });
  });
  await page.keyboard.press('Control+Enter');
  await reloaded;
  await expect.poll(() => storedText(page)).toContain(PROMPT + fast.join(''));
});

test('two tabs keep a text, a prompt and sides each over a reload, also a change whose writing the reload cuts off', async ({
  visit,
  system,
}) => {
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

  const cut = await page.evaluateHandle(() => {
    const { put } = IDBObjectStore.prototype;
    const seen: string[] = [];
    // As browsers do with what a page that is left writes.
    IDBObjectStore.prototype.put = function (value, key) {
      const request = put.call(this, value, key);
      this.transaction.abort();
      seen.push(JSON.stringify(value));
      return request;
    };
    return seen;
  });
  await typeInto(textOf(page), PROMPT);
  await expect.poll(() => cut.jsonValue()).toContainEqual(expect.stringContaining(PROMPT));
  await page.reload();
  await expect.poll(() => shown(page)).toBe(PROMPT);
});

test('line breaks of Windows stay in what the model writes, and become plain ones in pasted text', async ({
  visit,
}) => {
  const { page, consoleErrors } = await visit('/');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
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
  expect(consoleErrors).toEqual([]);
});

const promptOf = (page: Page) => page.getByRole('textbox', { name: 'Prompt' });
const answerOf = (page: Page) => page.getByRole('region', { name: 'Answer of A' }).getByRole('option');

describe('a text', () => {
  const site = sharedVisit('/');

  test('goes to Tree, and with a branch to Compare', async () => {
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
    await expect.poll(() => promptOf(page).inputValue()).toBe(branch);
  });

  test('is not sent by Compare while a dialog is open', async () => {
    const { page } = site;
    const sent = () => site.requestedUrls.filter((url) => url.endsWith('/v1/completions')).length;
    const before = sent();
    await page.getByRole('button', { name: /^Key/ }).click();
    await page.locator('input[type=password]:focus').waitFor();
    await page.keyboard.press('Control+Enter');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await promptOf(page).press('Control+Enter');
    // A token of line breaks has no width, so it counts as hidden.
    await answerOf(page).first().waitFor({ state: 'attached' });
    await button(page, 'Stop').and(page.locator(':disabled')).waitFor();
    // One for each side.
    expect(sent() - before).toBe(2);
  });

  test('goes back with an answer, and undo gives the first text', async () => {
    const { page } = site;
    const branch = await promptOf(page).inputValue();
    const answered = await answerOf(page).allTextContents();
    await button(page, 'Open A in').click();
    await button(page, 'Open in Playground').locator('visible=true').click();
    await expect.poll(() => shown(page)).toBe(branch + answered.join(''));
    await expect.poll(() => textOf(page).locator('.token').count()).toBeGreaterThan(10);
    await button(page, 'Undo').click();
    await expect.poll(() => shown(page)).toBe(PROMPT);
  });
});
