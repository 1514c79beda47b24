import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { siteTest as test } from '../../support/browser/site-test.ts';

const search = async (page: Page, query: string): Promise<string[]> => {
  await page.getByRole('searchbox').fill(query);
  const results = page.getByRole('list', { name: 'Results' }).getByRole('link');
  await results.first().waitFor();
  return results.allInnerTexts();
};

test('search finds an operation by one of its fields, and a guide by its words', async ({ visit }) => {
  const { page, violations } = await visit('/docs');
  // Several operations have the field.
  const places = (await search(page, 'repetition_penalty')).slice(0, 3).join();
  expect(places).toContain('POST /v1/completions');
  expect(await violations()).toEqual([]);
  expect((await search(page, 'rate limits')).join()).toContain('Tenants, API keys and limits');
  await search(page, 'glossary');
  await page.getByRole('searchbox').press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Glossary' }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/docs/guides/glossary');
});

test('"Try it" sends a completion with the key in a header only, and shows the answer', async ({
  visit,
  system,
}) => {
  const site = await visit('/docs/api/createCompletion');
  const { page } = site;
  await page
    .getByRole('textbox', { name: 'Body' })
    .fill('{"model":"default","prompt":"Once","max_tokens":5}');
  const sent = page.waitForRequest(`${system.url}/v1/completions`);
  await page.getByRole('button', { name: 'Execute' }).click();
  const request = await sent;
  expect(await request.headerValue('authorization')).toBe(`Bearer ${system.apiKey}`);
  const answer = (await (await request.response())!.json()) as { id: string; choices: { text: string }[] };
  const shown = page.getByRole('region', { name: 'Response', exact: true });
  await shown.getByText('Status 200').waitFor();
  expect(await shown.innerText()).toContain(answer.id);
  await shown.getByText('curl', { exact: true }).click();
  expect(await shown.innerText()).toContain('Bearer YOUR_KEY');

  expect(await site.violations()).toEqual([]);
  const secret = system.apiKey.slice(16);
  expect(site.requestedUrls.join()).not.toContain(secret);
  expect([page.url(), await page.content()].join()).not.toContain(secret);
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  expect(stored).not.toContain(secret);
});

test('"Try it" shows an error of the server with its status', async ({ visit }) => {
  const { page } = await visit('/docs/api/createCompletion');
  await page.getByRole('textbox', { name: 'Body' }).fill('{"prompt":"Once","max_tokens":"many"}');
  await page.getByRole('button', { name: 'Execute' }).click();
  const shown = page.getByRole('region', { name: 'Response', exact: true });
  await shown.getByText('Status 400').waitFor();
  expect(await shown.innerText()).toContain('missing_required_parameter');
});

test('links between guides and to their sections work without loading the page again', async ({ visit }) => {
  const { page, requestedUrls } = await visit('/docs/guides/constraints');
  await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'GBNF' }).click();
  const section = page.getByRole('heading', { name: 'GBNF', exact: true });
  await expect.poll(async () => (await section.boundingBox())?.y ?? 9_999).toBeLessThan(200);
  await page
    .getByRole('navigation', { name: 'Documentation' })
    .getByRole('link', { name: 'Models', exact: true })
    .click();
  await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'Constraints' }).waitFor();
  expect(requestedUrls.filter((url) => new URL(url).pathname.startsWith('/docs'))).toHaveLength(1);
});

test('the admin API is shown to admin keys, and says what is missing without one', async ({ visit }) => {
  const { page } = await visit('/docs/admin');
  await page.getByRole('main').getByRole('link', { name: '/admin/v1/keys' }).first().click();
  await page.getByRole('button', { name: 'Execute' }).waitFor();
  const stranger = await visit('/docs/admin', { key: null });
  await stranger.page.getByRole('alert').getByText('Enter an admin key').waitFor();
});

test('the key goes from the playground to the documentation and back, and stays out of the address', async ({
  visit,
}) => {
  const { page } = await visit('/');
  const accepted = () => page.getByRole('button', { name: 'Key accepted' }).waitFor();
  await accepted();
  await page.getByRole('link', { name: 'Docs' }).click();
  await page.waitForURL('**/docs');
  await accepted();
  await page.getByRole('link', { name: 'Tree' }).click();
  await page.waitForURL('**/#/tree');
  await accepted();
});

test('an operation loads at most 1 MB of compressed scripts', async ({ visit }) => {
  const { page } = await visit('/docs/api/createCompletion');
  await page.getByRole('button', { name: 'Execute' }).waitFor();
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
  expect(total).toBeGreaterThan(100_000);
  expect(total).toBeLessThan(1_000_000);
});
