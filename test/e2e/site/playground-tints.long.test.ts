import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a king';

const write = (page: Page, text: string) => typeInto(page.getByRole('textbox', { name: 'Text' }), text);

test('the first screen shows what tints mean, until a text is written', async ({ visit }) => {
  const { page, violations } = await visit('/');
  const sample = page.getByRole('figure');
  await sample.waitFor();
  const color = (word: string) =>
    sample.getByText(word, { exact: true }).evaluate((element) => getComputedStyle(element).backgroundColor);
  const [none, some, most] = [await color('was'), await color('the'), await color('moon')];
  expect(new Set([none, some, most]).size).toBe(3);
  expect(none).toMatch(/ 0\)$/);
  expect(await violations()).toEqual([]);
  await write(page, 'a');
  await sample.waitFor({ state: 'detached' });
});

test('the tokens of the prompt are counted once it is written, before it is sent', async ({
  visit,
  system,
}) => {
  const { page, requestedUrls } = await visit('/');
  // A clock of its own: on a busy machine, the time between two letters can be longer than a pause. It stops
  // a minute ahead, because a machine that is busy now may reach an earlier time first.
  await page.clock.install();
  await write(page, '');
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 60_000);
  for (const letter of PROMPT) {
    await page.keyboard.type(letter);
    await page.clock.runFor(100);
  }
  await page.clock.runFor(1_000);
  const response = await fetch(`${system.url}/tokenize`, {
    method: 'POST',
    headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: PROMPT }),
  });
  const { count } = (await response.json()) as { count: number };
  await page.getByText(`Prompt: ${count} of 2,048 tokens`, { exact: true }).waitFor();
  expect(requestedUrls.filter((url) => url.endsWith('/tokenize'))).toHaveLength(1);
});

test('more alternatives than the dialect allows are refused with what it allows', async ({ visit }) => {
  const { page } = await visit('/');
  await write(page, PROMPT);
  await page.locator('summary').filter({ hasText: 'Logprobs' }).press('Enter');
  await page.getByLabel('logprobs', { exact: true }).focus();
  await page.keyboard.type('200');
  await page.getByRole('alert').getByText('At most').waitFor();
  const offer = page.getByRole('button', { name: /^Use \d+$/ });
  const allowed = Number((await offer.innerText()).replace('Use ', ''));
  await offer.press('Enter');
  const sent = page.waitForRequest((request) => request.url().endsWith('/v1/completions'));
  await page.keyboard.press('Control+Enter');
  const request = await sent;
  expect(request.postDataJSON()).toMatchObject({ logprobs: allowed });
  const answer = await request.response();
  expect(answer!.status()).toBe(200);
});

test('alternatives have readable bars, bytes on one line, and the rest of the probability last; keys choose one', async ({
  visit,
}) => {
  const { page, violations } = await visit('/');
  await write(page, PROMPT);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('status').getByText('Finished').waitFor();
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('Alt+]');
  const popover = page.getByRole('region', { name: 'Alternatives' });
  await popover.getByRole('listitem').last().getByText('all others').waitFor();
  const rows = await popover.getByRole('listitem').allInnerTexts();
  const percents = rows.map((row) => Number(/([\d.]+) %/.exec(row)![1]));
  expect(percents.reduce((sum, value) => sum + value, 0)).toBeCloseTo(100, 0);
  const bars = await popover
    .locator('meter')
    .evaluateAll((all) =>
      all.map((bar) => [bar.getBoundingClientRect().width, bar.getBoundingClientRect().height]),
    );
  for (const [width, height] of bars) expect([width! >= 90, height! >= 12]).toEqual([true, true]);
  const bytes = await popover
    .locator('.bytes')
    .evaluateAll((all) => all.map((one) => one.getClientRects().length));
  expect(new Set(bytes)).toEqual(new Set([1]));
  expect(await violations()).toEqual([]);

  const first = page.getByRole('textbox', { name: 'Text' }).locator('.token').first();
  const before = await first.textContent();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  await expect.poll(() => first.textContent()).not.toBe(before);
  await page.getByRole('status').getByText('Finished').waitFor();
});
