import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { Locator, Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { siteTest as test } from '../../support/browser/site-test.ts';

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../../..');

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

/** Replaces the body of the form. */
async function writeBody(page: Page, body: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Body' }).focus();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(body);
}

/** Sends the form by a key, once the last request has ended. */
const send = (page: Page) =>
  page.getByRole('button', { name: 'Send' }).and(page.locator(':enabled')).press('Enter');

const response = (page: Page) => page.getByRole('region', { name: 'Response', exact: true });

test('search finds an operation by one of its fields, and a guide by a question', async ({ visit }) => {
  const { page, violations } = await visit('/docs');
  // Several operations have the field.
  const places = await search(page, 'repetition_penalty');
  const firstFour = async () => (await places.allInnerTexts()).slice(0, 4).join();
  await expect.poll(firstFour).toContain('POST /v1/completions');
  expect(await violations()).toEqual([]);
  await search(page, 'serve my own huggingface model');
  await expect.poll(() => places.first().innerText()).toMatch(/^Names\s+Models\s+.*model/s);
  const marks = page.locator('.docs-results li').first().locator('mark');
  await expect.poll(async () => (await marks.allInnerTexts()).join()).toMatch(/model/i);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/docs/guides/models');
});

test.for([
  '/docs/guides/__proto__',
  '/docs/guides/constructor',
  '/docs/guides/none',
  '/docs/api/__proto__',
  '/docs/none',
])('%s says that there is no such page', async (address, { visit }) => {
  const { page } = await visit(address);
  await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
});

test('a guide opens at a fragment that is malformed, and says if it cannot be loaded', async ({ visit }) => {
  const { page } = await visit('/docs/guides/glossary#%E0%A4');
  await page.getByRole('heading', { level: 1, name: 'Glossary' }).waitFor();
  await page.route('**/*.js', (route) => route.abort());
  const navigation = page.getByRole('navigation', { name: 'Documentation' });
  await navigation.getByRole('link', { name: 'Models', exact: true }).click();
  await page.getByRole('alert').getByText('could not be loaded').waitFor();
});

test('guides come before operations, Getting started first, and the current page is in sight', async ({
  visit,
}) => {
  const { page } = await visit('/docs/api/createCompletion');
  const navigation = page.getByRole('navigation', { name: 'Documentation' });
  const names = () => navigation.getByRole('link').allInnerTexts();
  await expect.poll(async () => (await names()).some((name) => /^GET/.test(name))).toBe(true);
  const shown = await names();
  expect(shown.slice(0, 2)).toEqual(['Overview', 'Getting started']);
  expect(shown.findIndex((name) => /^(GET|POST)/.test(name))).toBeGreaterThan(15);
  const current = navigation.locator('[aria-current="page"]');
  await expect.poll(async () => (await current.boundingBox())?.y ?? 9_999).toBeLessThan(800);
});

test('overview, guides and operations begin at one edge, and copy buttons lie in their blocks', async ({
  visit,
}) => {
  const edges: (number | undefined)[] = [];
  for (const address of ['/docs', '/docs/guides/api', '/docs/api/createCompletion', '/docs/none']) {
    const { page } = await visit(address, { width: 1600 });
    const heading = page.getByRole('heading', { level: 1 });
    await heading.waitFor();
    edges.push((await heading.boundingBox())?.x);
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

test('a deletion is sent only after a question', async ({ visit }) => {
  const { page, requestedUrls } = await visit('/docs/admin/eraseTenant');
  await page.getByRole('textbox', { name: 'id' }).fill('nobody-here');
  const deletions = () => requestedUrls.filter((url) => url.endsWith('/nobody-here'));
  await send(page);
  const question = page.getByRole('dialog');
  await question.getByText('cannot be undone').waitFor();
  await question.getByRole('button', { name: 'Cancel' }).click();
  await question.waitFor({ state: 'detached' });
  expect(deletions()).toEqual([]);
  await send(page);
  await question.getByRole('button', { name: 'Delete' }).click();
  await response(page).getByText('Status 404').waitFor();
  expect(deletions()).toHaveLength(1);
});

test('a search shows results, or that there are none, only once its index is there', async ({ visit }) => {
  const { page } = await visit('/docs');
  await page.getByRole('link', { name: 'GET /v1/models', exact: true }).first().waitFor();
  const released = Promise.withResolvers<void>();
  await page.route('**/*.js', async (route) => {
    await released.promise;
    await route.continue();
  });
  const asked = page.waitForRequest('**/*.js');
  const results = await search(page, 'models');
  await asked;
  const status = page.locator('search').getByRole('status');
  const beforeRelease = [await page.getByText('Nothing found').count(), await status.textContent()];
  expect(beforeRelease).toEqual([0, '']);
  released.resolve();
  await results.first().waitFor();
  await page.keyboard.type('qqqqqq');
  await page.getByText('Nothing found').waitFor();
  await expect.poll(() => status.textContent()).toBe('0 results');
});

test('on a narrow screen, Enter in the search closes the contents and shows the place', async ({ visit }) => {
  const { page } = await visit('/docs', { width: 390 });
  const contents = page.getByRole('button', { name: 'Contents and search' });
  await contents.press('Enter');
  await (await search(page, 'gbnf')).first().waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/docs/guides/**');
  await page.locator('.guide h1').waitFor();
  await expect.poll(() => contents.getAttribute('aria-expanded')).toBe('false');
});

test('a link shows the top of another operation, and loads the page of the shown one no second time', async ({
  visit,
}) => {
  const { page, requestedUrls } = await visit('/docs/api/createCompletion');
  const link = (name: string) =>
    page.getByRole('navigation', { name: 'Documentation' }).getByRole('link', { name, exact: true });
  const scrollTop = () => page.locator('main').evaluate((main) => main.scrollTop);
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await page.locator('main').hover();
  await page.mouse.wheel(0, 2_000);
  await expect.poll(scrollTop).toBeGreaterThan(1_000);
  await link('POST /v1/score').press('Enter');
  await page.getByRole('heading', { level: 1, name: /score/i }).waitFor();
  await expect.poll(scrollTop).toBe(0);
  await link('POST /v1/score').press('Enter');
  await link('GET /v1/models').press('Enter');
  await page.getByRole('heading', { level: 1, name: /models/i }).waitFor();
  expect(requestedUrls.filter((url) => new URL(url).pathname.startsWith('/docs/api'))).toHaveLength(1);
});

test('"Try it" sends a completion with the key in a header only, and shows the answer', async ({
  visit,
  system,
}) => {
  const site = await visit('/docs/api/createCompletion');
  const { page } = site;
  const body = '{"model":"default","prompt":"Once","max_tokens":5,"seed":7}';
  await writeBody(page, body);
  const sent = page.waitForRequest(`${system.url}/v1/completions`);
  await send(page);
  const sentKey = await (await sent).headerValue('authorization');
  expect(sentKey).toBe(`Bearer ${system.apiKey}`);
  // Chromium does not keep every body: the same request, sent from here, says what is due.
  const headers = { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json' };
  const answer = await fetch(`${system.url}/v1/completions`, { method: 'POST', headers, body });
  const { choices } = (await answer.json()) as { choices: { text: string }[] };
  const shown = response(page);
  await shown.getByText('Status 200').waitFor();
  await expect.poll(() => shown.innerText()).toContain(`"text": ${JSON.stringify(choices[0]!.text)}`);
  await shown.getByText('Status 200').waitFor();
  await shown.getByText('Response headers').click();
  await expect.poll(() => shown.innerText()).toContain('content-type: application/json');

  expect(await site.violations()).toEqual([]);
  const secret = system.apiKey.slice(16);
  expect(site.requestedUrls.join()).not.toContain(secret);
  const content = await page.content();
  expect([page.url(), content].join()).not.toContain(secret);
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  expect(stored).not.toContain(secret);
});

test('"Try it" shows a stream, an error with its status, and what is wrong with a body', async ({
  visit,
}) => {
  const { page } = await visit('/docs/api/createCompletion');
  await page.getByLabel('Example', { exact: true }).selectOption('stream');
  await send(page);
  await expect.poll(() => response(page).innerText()).toContain('data: [DONE]');
  await writeBody(page, '{"prompt":"Once","max_tokens":"many"}');
  await send(page);
  await response(page).getByText('Status 400').waitFor();
  await expect.poll(() => response(page).innerText()).toContain('missing_required_parameter');
  await writeBody(page, '{"prompt":');
  await page.getByText('The body is not JSON').waitFor();
});

test('"Try it" puts values into the path, the query and headers', async ({ visit, system }) => {
  const { page } = await visit('/docs/api/retrieveModel');
  await page.getByRole('textbox', { name: 'id' }).focus();
  await page.keyboard.type('continuo-mini');
  await page.getByText('Optional headers').press('Enter');
  await page.getByRole('textbox', { name: 'x-dialect' }).focus();
  await page.keyboard.type('vllm');
  const sent = page.waitForRequest(`${system.url}/v1/models/continuo-mini`);
  await send(page);
  const sentDialect = await (await sent).headerValue('x-dialect');
  expect(sentDialect).toBe('vllm');
  await response(page).getByText('Status 200').waitFor();
  await expect
    .poll(() => page.getByRole('region', { name: 'Code' }).innerText())
    .toContain('x-dialect: vllm');
});

test('aliases are folded into their field, so that each thing to set is listed once', async ({ visit }) => {
  const { page } = await visit('/docs/api/createCompletion');
  const body = page.getByRole('region', { name: 'Body', exact: true });
  const names = () => body.locator('> .schema > li > .schema-head > code').allInnerTexts();
  const { components } = await (await fetch(new URL('/openapi.json', page.url()))).json();
  const fields = Object.entries<{ readonly description: string }>(
    components.schemas.CompletionRequest.properties,
  );
  const isAlias = ({ description }: { readonly description: string }) => description.startsWith('Alias of ');
  const own = fields.filter(([, schema]) => !isAlias(schema)).map(([name]) => name);
  expect(own.length).toBeLessThan(fields.length - 10);
  await expect.poll(async () => (await names()).toSorted()).toEqual(own.toSorted());
  const withAlias = body.getByRole('listitem').filter({ hasText: 'n_predict' }).first();
  await expect.poll(() => withAlias.innerText()).toMatch(/^max_tokens/);
});

const SAMPLES = [
  ['createCompletion', 'curl'],
  ['createCompletion', 'TypeScript'],
  ['createScore', 'curl'],
  ['createScore', 'TypeScript'],
  ['listModels', 'curl'],
  ['listModels', 'TypeScript'],
  ['tokenize', 'curl'],
  ['tokenize', 'TypeScript'],
] as const;

test.for(SAMPLES)(
  'the sample of %s in %s runs when it is pasted',
  async ([id, language], { visit, system }) => {
    const { page } = await visit(`/docs/api/${id}`);
    const code = page.getByRole('region', { name: 'Code' });
    await code.getByText(language, { exact: true }).click();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await code.getByRole('button', { name: 'Copy' }).click();
    await code.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    await expect.poll(() => code.locator('code').textContent()).toBe(copied);
    expect(copied).not.toContain(system.apiKey);
    const file = path.join(ROOT, `.example-${process.pid}-${id}.ts`);
    writeFileSync(file, copied);
    onTestFinished(() => rmSync(file));
    const [program, args] = language === 'curl' ? ['sh', [file]] : [process.execPath, [file]];
    const { stdout } = await run(program, args, { env: { ...process.env, KEY: system.apiKey }, cwd: ROOT });
    expect(stdout.length).toBeGreaterThan(20);
    expect(stdout).not.toContain('error');
  },
);

test('guides have copy buttons, and links to the guides before and after', async ({ visit }) => {
  const { page, violations } = await visit('/docs/guides/command-line');
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
  await page.getByRole('heading', { level: 1, name: 'API' }).waitFor();
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
  await page.getByRole('button', { name: 'Send' }).waitFor();
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
  await page.getByRole('link', { name: 'Playground' }).click();
  await page.getByRole('link', { name: 'Basics in the documentation' }).press('Enter');
  await page.waitForURL('**/docs/guides/api#fields');
  await accepted();
});

test('an operation loads at most 120 KB of compressed scripts', async ({ visit }) => {
  const { page } = await visit('/docs/api/createCompletion');
  await page.getByRole('button', { name: 'Send' }).waitFor();
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
});
