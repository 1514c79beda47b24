import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, expect } from 'vitest';
import { typeInto } from '../../support/browser/site-page.ts';
import { sharedVisit, siteTest as test } from '../../support/browser/site-test.ts';
import { button, complete, PROMPT, shown, status, textOf } from './playground-page.ts';

/** What a visitor looks for in the first minutes, by keys, first in dark colours on a telephone. */
const site = sharedVisit('/', { scheme: 'dark', width: 390 });

afterAll(() => expect(site.consoleErrors).toEqual([]));

const dialog = (page: Page) => page.getByRole('dialog');

async function expectAccessible(name: string): Promise<void> {
  await site.screenshot(name);
  const violations = await site.violations();
  expect(violations, name).toEqual([]);
}

/** Presses a button that saves a file, and returns the file. */
async function savedBy(page: Page, name: string): Promise<string> {
  const download = page.waitForEvent('download');
  await button(page, name).press('Enter');
  return readFile(await (await download).path(), 'utf8');
}

/** Leaves the text, so that letters are keys. */
const leaveText = (page: Page) => button(page, 'More').focus();

test('tokens are listed and saved with the bytes of the text', async () => {
  const { page } = site;
  await complete(page);
  const text = await shown(page);
  await textOf(page).press('Alt+l');
  await dialog(page).getByText('typed characters have no tokens yet').waitFor();
  await dialog(page).getByRole('button', { name: 'Score text' }).press('Enter');
  await dialog(page).getByText('typed characters').waitFor({ state: 'detached' });
  await expectAccessible('tokens');
  const list = JSON.parse(await savedBy(page, 'Save JSON'));
  const bytes = list.tokens.flatMap((token: { bytes: number[] }) => token.bytes);
  expect([list.text, Buffer.from(bytes).toString()]).toEqual([text, text]);
  const csv = await savedBy(page, 'Save CSV');
  expect(csv).toMatch(/^index,text_offset,id,text,bytes,logprob,probability,rank\r\n0,0,\d+,/);
  await page.keyboard.press('Escape');
});

test('a request is repeated with an equal text', async () => {
  const { page } = site;
  await leaveText(page);
  await page.keyboard.press('r');
  await dialog(page).getByText('System fingerprint').waitFor();
  const body = JSON.parse((await dialog(page).locator('pre code').textContent())!);
  expect(body).toMatchObject({ prompt: PROMPT, seed: expect.any(Number), stream: true });
  await button(page, 'Repeat').press('Enter');
  await dialog(page).getByText('The text is equal.').waitFor();
  await expectAccessible('repeat');
  await page.keyboard.press('Escape');
});

test('one of several choices is taken into the text, and undo takes it back', async () => {
  const { page } = site;
  const text = await shown(page);
  await page.setViewportSize({ width: 1280, height: 800 });
  await typeInto(page.getByLabel('n', { exact: true }), '3');
  await typeInto(page.getByLabel('max_tokens', { exact: true }), '12');
  await page.keyboard.press('Control+Enter');
  await status(page).getByText('Take one with').waitFor();
  await status(page).getByText('Finished').waitFor();
  await expectAccessible('choices');
  await leaveText(page);
  await page.keyboard.press('2');
  const second = page.locator('.choice').nth(1).getByRole('listbox');
  await expect.poll(() => shown(page)).toBe(text + (await second.innerText()));
  await textOf(page).press('Alt+1');
  await status(page).getByText('Choice 1 is in the text').waitFor();
  for (const _ of [1, 2]) await textOf(page).press('Control+z');
  await expect.poll(() => shown(page)).toBe(text);
});

test('ids of tokens are sent as they are, also before their text is shown, and wrong ones not at all', async () => {
  const { page } = site;
  const text = await shown(page);
  await typeInto(page.getByLabel('n', { exact: true }), '');
  await page.getByLabel('Token ids', { exact: true }).press('Space');
  const ids = page.getByLabel('Token ids of the prompt');
  await status(page).getByText('ids are sent as they are').waitFor();
  const all = (await ids.inputValue()).split(', ');
  const sent = page.waitForRequest((request) => request.url().endsWith('/v1/completions'));
  await typeInto(ids, '1, x');
  await page.keyboard.press('Control+Enter');
  await typeInto(ids, JSON.stringify(all.slice(0, 5).map(Number)));
  await page.keyboard.press('Control+Enter');
  expect((await sent).postDataJSON().prompt).toEqual(all.slice(0, 5).map(Number));
  await status(page).getByText('17 ids are sent as they are').waitFor();
  await expectAccessible('ids');
  for (const _ of [1, 2]) await textOf(page).press('Control+z');
  await expect.poll(() => shown(page)).toBe(text);
  await page.getByLabel('Token ids', { exact: true }).press('Space');
});

test('a link brings text and parameters, and undo gives back those before', async () => {
  const { page } = site;
  const text = await shown(page);
  await button(page, 'More').press('Enter');
  await button(page, 'Link to this text…').press('Enter');
  const link = (await dialog(page).locator('pre code').textContent())!;
  await expectAccessible('share');
  await page.keyboard.press('Escape');
  await typeInto(textOf(page), 'Other');
  await page.getByLabel('Preset').selectOption('Most likely');
  const before = { preset: 'Most likely', text: 'Other' };
  const now = async () => ({ preset: await page.getByLabel('Preset').inputValue(), text: await shown(page) });
  await page.evaluate((address) => location.assign(address), link);
  await expect.poll(now).toEqual({ preset: 'Custom', text });
  await page.getByText(/came from a link of \d{4}-/).waitFor();
  expect(new URL(page.url()).hash).toBe('#/');
  await textOf(page).press('Control+z');
  await expect.poll(now).toEqual(before);
  await page.getByText('came from a link').waitFor({ state: 'detached' });
});

test('two prompts are compared', async () => {
  const { page } = site;
  await page.emulateMedia({ colorScheme: 'light' });
  await page.getByRole('link', { name: 'Compare' }).press('Enter');
  await page.getByRole('textbox', { name: 'Prompt' }).waitFor();
  await page.getByLabel('Two prompts').press('Space');
  for (const [name, prompt] of [
    ['Prompt of A', PROMPT],
    ['Prompt of B', `${PROMPT} who`],
  ] as const)
    await typeInto(page.getByRole('textbox', { name }), prompt);
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/v1/completions')) sent.push(request.postDataJSON().prompt);
  });
  await page.keyboard.press('Control+Enter');
  await button(page, 'Stop').and(page.locator(':disabled')).waitFor();
  expect(sent.toSorted()).toEqual([PROMPT, `${PROMPT} who`]);
  await expectAccessible('two-prompts');
});

test('a given text is scored on both sides', async () => {
  const { page } = site;
  await page.getByRole('radio', { name: 'Given text' }).press('Space');
  await typeInto(page.getByRole('textbox', { name: 'Text' }), `${PROMPT} 🙂`);
  await page.keyboard.press('Control+Enter');
  await status(page).getByText('Sum of B − A: 0.00 nats').waitFor();
  await expect.poll(() => page.locator('.differences').textContent()).toBe(`${PROMPT} 🙂`);
  await expectAccessible('given-text');
  await page.emulateMedia({ forcedColors: 'active' });
  await expectAccessible('given-text-forced');
});

test('lines of choices are scored and saved', async () => {
  const { page } = site;
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('radio', { name: 'Choices' }).press('Space');
  const lines = Array.from({ length: 20 }, () =>
    JSON.stringify({ prompt: 'Once upon a', choices: [' spreadsheet', ' time'], answer: 1 }),
  );
  await page
    .getByLabel('File')
    .setInputFiles({ name: 'a.jsonl', mimeType: '', buffer: Buffer.from(`${lines.join('\n')}\nnone\n`) });
  await status(page).getByText('20 lines to score, 1 left out').waitFor();
  await button(page, 'Score').press('Enter');
  await status(page).getByText('Accuracy of 20 lines: sum 100.0 %').waitFor();
  await status(page).getByText('20 of 20 lines').waitFor();
  await page.getByRole('cell').getByRole('button', { name: '1', exact: true }).press('Enter');
  await page.getByRole('region', { name: 'Line 1' }).getByText('★ best, answer').waitFor();
  await expectAccessible('score');
  const scores = (await savedBy(page, 'Save JSONL')).trimEnd().split('\n');
  expect(scores.map((line) => JSON.parse(line).best)).toEqual(lines.map(() => 1));
});
