import type { Route } from 'playwright-core';
import { afterAll, expect } from 'vitest';
import { sharedVisit, siteTest as test } from '../../support/browser/site-test.ts';
import { button, call, enter, LONG_NAME, link, tabTo, typeInto } from './keyboard.ts';

const site = sharedVisit('/');

afterAll(() => expect(site.consoleErrors).toEqual([]));

test('an operator makes, finds and pays a tenant among 3,000 by key presses', async () => {
  const { page, violations, screenshot } = site;
  // The server has few tenants. The others come with its own list.
  await page.route('**/admin/v1/tenants?*', withOthers);
  await enter(page, link(page, 'Operator'));
  await page.getByRole('cell', { name: 'loaded' }).first().waitFor();
  await tabTo(page, page.getByRole('slider'));
  await page.keyboard.press('Home');
  await expect.poll(() => page.getByRole('slider').getAttribute('aria-valuenow')).toBe('0');
  expect(await violations()).toEqual([]);
  await screenshot('operator');

  await enter(page, link(page, 'Tenants'));
  await page.getByText(/^3,0\d\d of 3,0\d\d$/).waitFor();
  expect(await violations()).toEqual([]);
  await enter(page, button(page, 'Create a tenant'));
  await page.getByRole('dialog').waitFor();
  await page.keyboard.type(LONG_NAME);
  await typeInto(page, page.getByLabel(/^Id/), 'walk-operator');
  expect(await violations()).toEqual([]);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await typeInto(page, page.getByLabel('Find'), 'WALK-operator');
  await page.getByText(/^1 of 3,0\d\d$/).waitFor();

  await enter(page, button(page, LONG_NAME));
  await enter(page, button(page, 'Balance…'));
  await enter(page, page.getByText('Add to the balance'));
  await typeInto(page, page.getByLabel(/^Amount/), '12.5');
  await page.keyboard.press('Enter');
  await page.getByText('12.50').first().waitFor();
  expect(await violations()).toEqual([]);
  await screenshot('operator-balance');
  await page.keyboard.press('Escape');
});

test('a tenant is suspended and erased only after its name, not its id, was typed', async () => {
  const { page, violations } = site;
  for (const [open, action] of [
    ['Suspend…', 'Suspend the tenant'],
    ['Erase…', 'Erase the tenant'],
  ] as const) {
    await enter(page, button(page, LONG_NAME));
    await enter(page, button(page, open));
    const confirmed = button(page, action);
    await confirmed.waitFor();
    await page.keyboard.type('walk-operator');
    await page.keyboard.press('Enter');
    await expect.poll(() => confirmed.isDisabled()).toBe(true);
    await typeInto(page, page.getByLabel('Type the name of the tenant'), LONG_NAME);
    expect(await violations()).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    if (action === 'Suspend the tenant') await page.getByRole('cell', { name: 'suspended' }).waitFor();
  }
  await page.getByText('No tenant is like this.').waitFor();
});

test('on a phone in the dark, a plan is deleted by its name', async ({ system }) => {
  const { page, violations } = site;
  const limits = { tokens_per_day: 9 };
  await call(system, '/admin/v1/plans', { id: 'walk-plan', name: 'خطة الحبر', limits });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await enter(page, link(page, 'Plans'));
  await enter(page, button(page, 'خطة الحبر'));
  await enter(page, button(page, 'Delete…'));
  await page.getByLabel('Type the name of the plan').waitFor();
  await page.keyboard.type('خطة الحبر');
  await page.keyboard.press('Enter');
  await button(page, 'خطة الحبر').waitFor({ state: 'detached' });
  expect(await violations()).toEqual([]);
});

test('on a phone, every view has one column, and the audit log has the deletion', async () => {
  const { page, violations, screenshot } = site;
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  const lines = () =>
    page
      .getByRole('navigation', { name: 'Views' })
      .getByRole('link')
      .evaluateAll((links) => new Set(links.map((one) => one.getBoundingClientRect().top)).size);
  await expect.poll(lines, { message: 'lines of views' }).toBe(1);
  await expect.poll(width).toBe(390);
  for (const section of ['Prices', 'Upstreams', 'Tenants', 'Now', 'Audit log']) {
    await enter(page, link(page, section));
    await page.getByRole('heading', { level: 2 }).first().waitFor();
    await expect.poll(() => page.getByText('Loading').count()).toBe(0);
    expect(await violations(), section).toEqual([]);
    await expect.poll(width).toBe(390);
  }
  const places = await page
    .locator('form input')
    .evaluateAll((inputs) =>
      inputs.map((input) => `${input.getBoundingClientRect().left}, ${input.clientWidth}`),
    );
  expect(places.length).toBeGreaterThan(4);
  expect(new Set(places).size, 'fields in one column').toBe(1);
  await typeInto(page, page.getByLabel('Find'), 'walk-');
  await page.keyboard.press('Enter');
  await page.getByRole('cell', { name: 'removePlan' }).waitFor();
  await screenshot('operator-audit');
  await page.emulateMedia({ forcedColors: 'active' });
  expect(await violations()).toEqual([]);
});

/** Answers the list of the server, with further tenants to make 3,000 or more. */
async function withOthers(route: Route): Promise<void> {
  const response = await route.fetch();
  const { data } = (await response.json()) as { data: readonly { readonly id: string }[] };
  const others = Array.from({ length: 2_999 }, (_, at) => ({
    ...data[0],
    ...{ id: `other-${at}`, name: at % 2 === 0 ? `دار الحبر ${at}` : `other ${at}`.repeat(20).slice(0, 200) },
    ...{ limits: {}, created_at: 1_700_000_000 + at },
  }));
  await route.fulfill({ response, json: { object: 'list', data: [...data, ...others], has_more: false } });
}
