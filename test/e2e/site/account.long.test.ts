import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { siteTest as test } from '../../support/browser/site-test.ts';
import type { System } from '../../support/system.ts';

/** Sends a request to the admin API, or to that of an account. */
async function call<T>(
  { url, apiKey }: Pick<System, 'url' | 'apiKey'>,
  path: string,
  body: object,
): Promise<T> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

/** Makes an account with a limit, and a key for it. */
async function accountWith(system: System, id: string, scopes: readonly string[]): Promise<string> {
  const limits = { tokens_per_day: 10_000 };
  await call(system, '/admin/v1/tenants', { id, name: 'دار الحبر والورق', limits });
  const key = { tenant: id, name: 'The key of the walk', scopes };
  return (await call<{ key: string }>(system, '/admin/v1/keys', key)).key;
}

const LONG_NAME = 'A name that was pasted from a ticket with all its words, '.repeat(4).slice(0, 200);

/** Presses Tab until an element has the focus. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.first().waitFor();
  const isFocused = () => target.first().evaluate((element) => element === document.activeElement);
  for (let presses = 0; !(await isFocused()); presses += 1) {
    if (presses > 60) throw new Error(`Tab does not reach ${target}.`);
    await page.keyboard.press('Tab');
  }
}

async function enter(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Enter');
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

async function openSection(page: Page, name: string): Promise<void> {
  await enter(page, page.getByRole('link', { name: 'Account' }));
  await enter(page, page.getByRole('link', { name, exact: true }));
}

test('keys are made, found and deleted by key presses, with long and right-to-left names', async ({
  visit,
  system,
}) => {
  const key = await accountWith(system, 'walk-keys', ['keys']);
  const names = Array.from({ length: 20 }, (_, at) => `service ${at}`);
  const own = { url: system.url, apiKey: key };
  for (const name of [...names, LONG_NAME, 'خادم الويب']) await call(own, '/v1/keys', { name });
  const { page, violations, screenshot } = await visit('/', { key });
  await openSection(page, 'Keys');
  await page.getByText('23 of 23').waitFor();
  expect(await violations()).toEqual([]);
  await screenshot('account-keys');

  await enter(page, button(page, 'Create a key'));
  await page.getByRole('dialog').waitFor();
  await page.keyboard.type('made by hand');
  await page.keyboard.press('Enter');
  const made = page.getByRole('region', { name: 'New key' });
  await made.getByText(/^sk-/).waitFor();
  await expect.poll(() => made.evaluate((element) => element === document.activeElement)).toBe(true);
  expect(await violations()).toEqual([]);
  await enter(page, button(page, 'I have stored it'));
  await made.waitFor({ state: 'detached' });
  await page.getByText('24 of 24').waitFor();

  await tabTo(page, page.getByLabel('Find'));
  await page.keyboard.type('خادم');
  await page.getByText('1 of 24').waitFor();
  await enter(page, button(page, 'خادم الويب'));
  await enter(page, button(page, 'Delete…'));
  await page.getByLabel('Type the name of the key').waitFor();
  expect(await violations()).toEqual([]);
  await page.keyboard.type('خادم الويب');
  await page.keyboard.press('Enter');
  await page.getByText('No key is like this.').waitFor();
});

test('a file becomes a batch whose results are saved and whose tokens leave less of a limit, and the use of 400 days is a chart and a table for keys', async ({
  visit,
  system,
}) => {
  const key = await accountWith(system, 'walk-work', ['completions', 'models']);
  const { page, violations, screenshot, consoleErrors } = await visit('/', { key });
  await openSection(page, 'Batches');
  await page.getByText('No batches').waitFor();
  expect(await violations()).toEqual([]);
  const body = { model: 'default', prompt: 'Once', max_tokens: 4 };
  const line = { custom_id: 'one', method: 'POST', url: '/v1/completions', body };
  const chosen = page.waitForEvent('filechooser');
  await enter(page, button(page, 'Run a file…'));
  const buffer = Buffer.from(JSON.stringify(line));
  await (await chosen).setFiles({ name: 'ليلي.jsonl', mimeType: 'application/jsonl', buffer });
  await page.getByText('1 of 1 lines').waitFor();
  const saved = page.waitForEvent('download');
  await enter(page, button(page, 'Results').last());
  await (await saved).path();
  expect(await violations()).toEqual([]);
  await screenshot('account-batches');
  await enter(page, page.getByRole('link', { name: 'Overview' }));
  const bar = page.getByRole('meter', { name: 'Tokens per day of the account' });
  await expect.poll(async () => Number(await bar.getAttribute('value'))).toBeGreaterThan(4);

  // The server cannot be made to have 400 days of usage. Its form is that of the API.
  await page.route('**/v1/usage?*', (route) => route.fulfill({ json: usageOf(route.request().url()) }));
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await enter(page, page.getByRole('link', { name: 'Usage', exact: true }));
  await page.getByText('400 days').click();
  const chart = page.getByRole('slider');
  await expect.poll(() => chart.getAttribute('aria-valuemax')).toBe('399');
  await chart.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => chart.getAttribute('aria-valuetext')).toMatch(/: 2 tokens$/);
  await enter(page, button(page, 'Requests'));
  await enter(page, button(page, 'Next'));
  await page.getByText('51 to 100 of 400').waitFor();
  expect(await violations()).toEqual([]);
  await screenshot('account-usage');
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  await expect.poll(width).toBe(390);
  await page.emulateMedia({ forcedColors: 'active' });
  expect(await violations()).toEqual([]);
  expect(consoleErrors).toEqual([]);
});

/** Day n has n requests of one token each. */
function usageOf(address: string): object {
  const query = new URL(address).searchParams;
  const [from, to] = [Date.parse(query.get('from')!), Date.parse(query.get('to')!)];
  const sums = (requests: number) => ({
    ...{ requests, completed: requests, failed: 0, prompt_tokens: requests, cached_tokens: 0 },
    ...{ completion_tokens: 0, cost_micros: requests },
  });
  const days = Array.from({ length: (to - from) / 86_400_000 + 1 }, (_, at) => at);
  const data = days.map((at) => ({
    day: new Date(from + at * 86_400_000).toISOString().slice(0, 10),
    ...sums(at + 1),
    mean_first_token_ms: 40,
  }));
  return { data, has_more: false, next: null, total: sums((days.length * (days.length + 1)) / 2) };
}
