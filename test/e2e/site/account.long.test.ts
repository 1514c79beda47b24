import type { Page, Route } from 'playwright-core';
import { describe, expect } from 'vitest';
import { sharedVisit, siteTest as test } from '../../support/browser/site-test.ts';
import type { System } from '../../support/system.ts';
import { button, call, enter, LONG_NAME, link, tabTo, typeInto } from './keyboard.ts';

/** Makes an account with a limit, and a key for it. */
async function accountWith(system: System, id: string, scopes: readonly string[]): Promise<string> {
  const limits = { tokens_per_day: 10_000 };
  await call(system, '/admin/v1/tenants', { id, name: 'دار الحبر والورق', limits });
  const key = { tenant: id, name: 'The key of the walk', scopes };
  return (await call<{ key: string }>(system, '/admin/v1/keys', key)).key;
}

const newKey = (page: Page) => page.getByRole('region', { name: 'New key' });

const site = sharedVisit('/', { key: null, touch: true });

async function openAccount(system: System, key: string): Promise<void> {
  const { page } = site;
  // Otherwise the same document would go on.
  await page.goto('about:blank');
  await page.goto(`${system.url}/#key=${key}`);
  await enter(page, page.getByRole('link', { name: 'Account' }));
}

test('by key presses, a file becomes a batch, and its results a file', async ({ system }) => {
  const { page, violations, screenshot } = site;
  await openAccount(system, await accountWith(system, 'walk-work', ['completions', 'models']));
  await enter(page, link(page, 'Batches'));
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
});

test('an upload whose connection breaks goes on with the part that is missing', async () => {
  const { page, violations } = site;
  // After the first of two parts: 8 of 13.3 MiB.
  const parts: string[] = [];
  await page.route('**/v1/uploads/*/parts', (route) => {
    parts.push(route.request().url());
    return parts.length === 2 ? route.abort() : route.continue();
  });
  const again = page.waitForEvent('filechooser');
  await enter(page, button(page, 'Run a file…'));
  const large = Buffer.alloc(Math.round(13.33 * 1024 * 1024), 'x');
  await (await again).setFiles({ name: 'large.jsonl', mimeType: 'application/jsonl', buffer: large });
  await page.getByText('stopped at 60 %').waitFor();
  expect(await violations()).toEqual([]);
  await enter(page, button(page, 'Retry'));
  await page.getByText('1 of 1 lines, 1 failed').waitFor();
  expect(parts).toHaveLength(3);
});

test('the tokens of a batch leave less of a limit', async () => {
  const { page } = site;
  await enter(page, link(page, 'Overview'));
  const bar = page.getByRole('meter', { name: 'Tokens per day of the account' });
  await expect.poll(async () => Number(await bar.getAttribute('aria-valuenow'))).toBeGreaterThan(4);
});

test('of 10,000 requests, the view shows 50 at a time', async () => {
  const { page, violations } = site;
  // The server cannot be made to have 10,000 requests and 400 days of usage. Their form is that of the API.
  await page.route('**/v1/requests?*', (route) => route.fulfill({ json: requestsOf(route) }));
  await enter(page, link(page, 'Requests'));
  for (const first of [9_951, 9_901, 9_851]) {
    await enter(page, button(page, 'Older'));
    await page.getByTitle(`req_${first - 1}`, { exact: true }).waitFor();
  }
  await expect.poll(() => page.getByRole('row').count()).toBe(51);
  expect(await violations()).toEqual([]);
});

test('on a phone in the dark, by taps, keys and wheel, the use of 400 days is a chart and a table', async () => {
  const { page, violations, screenshot, consoleErrors } = site;
  await page.route('**/v1/usage?*', (route) => route.fulfill({ json: usageOf(route.request().url()) }));
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await enter(page, link(page, 'Usage'));
  await page.getByText('400 days').tap();
  const chart = page.getByRole('slider');
  await expect.poll(() => chart.getAttribute('aria-valuemax')).toBe('399');
  await chart.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => chart.getAttribute('aria-valuetext')).toMatch(/: 2 tokens$/);
  await chart.tap();
  await expect.poll(() => chart.getAttribute('aria-valuetext')).toMatch(/: (199|200|201|202) tokens$/);
  await button(page, 'Requests').tap();
  await button(page, 'Next').tap();
  await page.getByText('51 to 100 of 400').waitFor();
  const scrolled = () => page.getByRole('main').evaluate(({ scrollTop }) => scrollTop);
  const before = await scrolled();
  await page.mouse.move(200, 400);
  await page.mouse.wheel(0, -200);
  await expect.poll(scrolled).toBeLessThan(before);
  expect(await violations()).toEqual([]);
  await screenshot('account-usage');
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  await expect.poll(width).toBe(390);
  await page.emulateMedia({ forcedColors: 'active' });
  expect(await violations()).toEqual([]);
  // Of the upload that was broken.
  expect(consoleErrors).toEqual(['Failed to load resource: net::ERR_FAILED']);
});

describe('by key presses', () => {
  let account: { readonly url: string; readonly apiKey: string };

  test('a key is made, and shown once', async ({ system }) => {
    const { page, violations, screenshot } = site;
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' });
    await page.setViewportSize({ width: 1280, height: 800 });
    account = { url: system.url, apiKey: await accountWith(system, 'walk-keys', ['keys']) };
    const names = Array.from({ length: 197 }, (_, at) => `service ${at}`);
    for (const name of [...names, LONG_NAME, 'خادم الويب']) await call(account, '/v1/keys', { name });
    await openAccount(system, account.apiKey);
    await enter(page, link(page, 'Keys'));
    await page.getByText('200 of 200').waitFor();
    expect(await violations()).toEqual([]);
    await screenshot('account-keys');

    await enter(page, button(page, 'Create a key'));
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('made by hand');
    await page.keyboard.press('Enter');
    const made = newKey(page);
    await made.getByText(/^sk-/).waitFor();
    await expect.poll(() => made.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(await violations()).toEqual([]);
    await enter(page, button(page, 'I have stored it'));
    await made.waitFor({ state: 'detached' });
    await page.getByText('201 of 201').waitFor();
  });

  test('a key is found, and deleted after its name was typed', async () => {
    const { page, violations } = site;
    await tabTo(page, page.getByLabel('Find'));
    await page.keyboard.type('خادم');
    await page.getByText('1 of 201').waitFor();
    await enter(page, button(page, 'خادم الويب'));
    await enter(page, button(page, 'Delete…'));
    await page.getByLabel('Type the name of the key').waitFor();
    expect(await violations()).toEqual([]);
    await page.keyboard.type('خادم الويب');
    await page.keyboard.press('Enter');
    await page.getByText('No key is like this.').waitFor();
  });

  test('a key is rotated, and ends after an overlap', async () => {
    const { page, violations } = site;
    await typeInto(page, page.getByLabel('Find'), 'pasted');
    await enter(page, button(page, LONG_NAME));
    await enter(page, button(page, 'Rotate…'));
    await page.getByLabel('Overlap', { exact: true }).waitFor();
    expect(await violations()).toEqual([]);
    await typeInto(page, page.getByLabel('Overlap', { exact: true }), '2');
    await page.keyboard.press('Enter');
    await newKey(page).getByText(/^sk-/).waitFor();
    await enter(page, button(page, 'I have stored it'));
    await page.getByText('2 of 202').waitFor();
    // By the clock of the server, after a moment.
    await page.getByText(/^ends in (2 h 0 min|1 h 59 min)$/).waitFor();
  });

  test('a key that is revoked takes the view away', async ({ system }) => {
    const { page, violations } = site;
    const { data } = await call<{ data: { id: string; name: string }[] }>(
      account,
      '/v1/keys?limit=1000',
      undefined,
      'GET',
    );
    const { id } = data.find(({ name }) => name === 'The key of the walk')!;
    await call(system, `/admin/v1/keys/${id}`, undefined, 'DELETE');
    await enter(page, button(page, 'Create a key'));
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('too late');
    await page.keyboard.press('Enter');
    await page.getByText('The server refuses this key').waitFor();
    await expect.poll(() => page.getByText('pasted').count()).toBe(0);
    expect(await violations()).toEqual([]);
  });
});

/** A page of 10,000 requests, the last one first. */
function requestsOf(route: Route): object {
  const query = new URL(route.request().url()).searchParams;
  const last = Number(query.get('after') ?? 10_000);
  const data = Array.from({ length: 50 }, (_, at) => ({
    ...{ id: `req_${last - at}`, created_at: 1_795_000_000 + last - at, key: 'k', user: null },
    ...{ model: 'نموذج'.repeat(40), status: 'completed', error_code: null, finish_reasons: ['stop'] },
    ...{ prompt_tokens: 3, cached_tokens: 0, completion_tokens: 4, cost_micros: 5, price_version: null },
    ...{ latency_ms: 40, first_token_ms: 20 },
  }));
  return { data, next: last > 50 ? String(last - 50) : null };
}

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
