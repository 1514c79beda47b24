import { gzipSync } from 'node:zlib';
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { SitePage } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

/** Types a question as a visitor does: the slash key focuses the field. */
async function search(page: Page, question: string): Promise<Locator> {
  const field = page.getByRole('searchbox');
  await field.waitFor();
  await page.keyboard.press('/');
  await field.and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Control+a');
  await page.keyboard.type(question);
  return page.getByRole('list', { name: 'Results' }).getByRole('link');
}

const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name });
const contents = (page: Page) => page.getByRole('navigation', { name: 'Documentation' });

test('search finds operations by their fields and guides by questions, and an address without a page, a guide or a permission says so', async ({
  visit,
  system,
}) => {
  const { page, violations } = await visit('/docs');
  await page.getByRole('link', { name: 'GET /v1/models', exact: true }).first().waitFor();
  const released = Promise.withResolvers<void>();
  await page.route('**/*.js', async (route) => {
    await released.promise;
    await route.continue();
  });
  const asked = page.waitForRequest('**/*.js');
  // Several operations have the field.
  const places = await search(page, 'repetition_penalty');
  await asked;
  const status = page.locator('search').getByRole('status');
  const beforeRelease = [await page.getByText('Nothing found').count(), await status.textContent()];
  expect(beforeRelease).toEqual([0, '']);
  released.resolve();
  const firstFour = async () => (await places.allInnerTexts()).slice(0, 4).join();
  await expect.poll(firstFour).toContain('POST /v1/completions');
  expect(await violations()).toEqual([]);
  await search(page, 'qqqqqq');
  await page.getByText('Nothing found').waitFor();
  await expect.poll(() => status.textContent()).toBe('0 results');

  await search(page, 'serve my own huggingface model');
  await expect.poll(() => places.first().innerText()).toMatch(/^Names\s+Models\s+.*model/s);
  const marks = page.locator('.docs-results li').first().locator('mark');
  await expect.poll(async () => (await marks.allInnerTexts()).join()).toMatch(/model/i);
  await page.keyboard.press('Enter');
  await heading(page, 'Models').waitFor();
  expect(new URL(page.url()).pathname).toBe('/docs/guides/models');

  // On a narrow screen, Enter closes the contents and shows the place.
  await page.setViewportSize({ width: 390, height: 844 });
  const opener = page.getByRole('button', { name: 'Contents and search' });
  await opener.press('Enter');
  await (await search(page, 'gbnf')).first().waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname !== '/docs/guides/models');
  await page.locator('.guide h1').waitFor();
  await expect.poll(() => opener.getAttribute('aria-expanded')).toBe('false');

  await page.setViewportSize({ width: 1280, height: 800 });
  for (const address of ['guides/__proto__', 'guides/constructor', 'guides/none', 'api/__proto__', 'none']) {
    await page.goto(`${system.url}/docs/${address}`);
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
  }
  await page.goto(`${system.url}/docs/guides/glossary#%E0%A4`);
  await heading(page, 'Glossary').waitFor();
  await page.route('**/*.js', (route) => route.abort());
  await contents(page).getByRole('link', { name: 'Models', exact: true }).click();
  await page.getByRole('alert').getByText('could not be loaded').waitFor();
  const stranger = await visit('/docs/admin', { key: null });
  await stranger.page.getByRole('alert').getByText('Enter an admin key').waitFor();
});

/** Copies a block, and goes to other guides and sections. */
async function walkGuides({ page, violations }: SitePage): Promise<void> {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy' }).first().press('Enter');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(() => page.locator('.code-block code').first().textContent()).toBe(copied);
  expect(await violations()).toEqual([]);
  const beside = page.getByRole('navigation', { name: 'Guides before and after' });
  const names = async () =>
    (await beside.getByRole('link').allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
  await expect.poll(names).toEqual(['Previous Migrating from OpenAI', 'Next API']);
  await beside.getByRole('link', { name: 'Next' }).press('Enter');
  await heading(page, 'API').waitFor();

  await contents(page).getByRole('link', { name: 'Constraints', exact: true }).click();
  await heading(page, 'Constraints').waitFor();
  await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'GBNF' }).click();
  const section = page.getByRole('heading', { name: 'GBNF', exact: true });
  await expect.poll(async () => (await section.boundingBox())?.y ?? 9_999).toBeLessThan(200);
  await contents(page).getByRole('link', { name: 'Models', exact: true }).click();
  await heading(page, 'Models').waitFor();
  await page.goBack();
  await heading(page, 'Constraints').waitFor();
}

test('an operation is sent and described without marks of Markdown, contents and guides lead to others without loading the page, and pages begin at one edge with copy buttons in their blocks', async ({
  visit,
  system,
}) => {
  const site = await visit('/docs/api/createCompletion');
  const { page, requestedUrls } = site;
  await expect.poll(() => page.locator('.operation').textContent()).not.toContain('`');
  await page.getByRole('button', { name: 'Send' }).press('Enter');
  await page.getByRole('region', { name: 'Response', exact: true }).getByText('Status 200').waitFor();
  const names = () => contents(page).getByRole('link').allInnerTexts();
  await expect.poll(async () => (await names()).some((name) => /^GET/.test(name))).toBe(true);
  const shown = await names();
  expect(shown.slice(0, 2)).toEqual(['Overview', 'Getting started']);
  expect(shown.findIndex((name) => /^(GET|POST)/.test(name))).toBeGreaterThan(15);
  const current = contents(page).locator('[aria-current="page"]');
  await expect.poll(async () => (await current.boundingBox())?.y ?? 9_999).toBeLessThan(800);

  const scripts = await page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .map(({ name }) => name)
      .filter((name) => name.endsWith('.js')),
  );
  const sizes = await Promise.all(
    scripts.map(async (name) => gzipSync(await (await fetch(name)).bytes()).byteLength),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  expect(total).toBeGreaterThan(20_000);
  expect(total).toBeLessThan(120 * 1024);

  const link = (name: string) => contents(page).getByRole('link', { name, exact: true });
  const scrollTop = () => page.locator('main').evaluate((main) => main.scrollTop);
  await page.locator('main').hover();
  await page.mouse.wheel(0, 2_000);
  await expect.poll(scrollTop).toBeGreaterThan(1_000);
  await link('POST /v1/score').press('Enter');
  await heading(page, /score/i).waitFor();
  await expect.poll(scrollTop).toBe(0);
  await link('POST /v1/score').press('Enter');
  await link('GET /v1/models').press('Enter');
  await heading(page, /models/i).waitFor();
  await page.goto(`${system.url}/docs/guides/command-line`);
  await walkGuides(site);
  expect(requestedUrls.filter((url) => new URL(url).pathname.startsWith('/docs'))).toHaveLength(2);

  const edges: (number | undefined)[] = [];
  await page.setViewportSize({ width: 1600, height: 800 });
  for (const address of ['/docs', '/docs/guides/api', '/docs/api/createCompletion', '/docs/none']) {
    await page.goto(system.url + address);
    const title = page.getByRole('heading', { level: 1 });
    await title.waitFor();
    edges.push((await title.boundingBox())?.x);
    for (const button of await page.getByRole('button', { name: 'Copy' }).all()) {
      const inside = await button.evaluate((element) => {
        const [inner, outer] = [element, element.closest('.code-block')!.querySelector('pre')!].map((one) =>
          one.getBoundingClientRect(),
        );
        return inner!.left >= outer!.left && inner!.right <= outer!.right && inner!.bottom <= outer!.bottom;
      });
      expect(inside, address).toBe(true);
    }
  }
  expect(new Set(edges).size).toBe(1);
});
