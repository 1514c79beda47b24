import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a king';

const write = (page: Page, text: string) => typeInto(page.getByRole('textbox', { name: 'Text' }), text);

test('the first screen shows what tints mean, alternatives have readable bars and the rest of the probability last, and keys choose one', async ({
  visit,
}) => {
  const { page, violations } = await visit('/');
  const sample = page.getByRole('figure');
  await sample.waitFor();
  const color = (word: string) =>
    sample.getByText(word, { exact: true }).evaluate((element) => getComputedStyle(element).backgroundColor);
  const [none, some, most] = [await color('was'), await color('the'), await color('moon')];
  expect(new Set([none, some, most]).size).toBe(3);
  expect(none).toMatch(/ 0\)$/);
  expect(await violations()).toEqual([]);

  await write(page, PROMPT);
  await sample.waitFor({ state: 'detached' });
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
