import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { openPage, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';
import { serve } from '../../support/local-server.ts';
import { button, PROMPT, textOf } from './playground-page.ts';

const dialog = (page: Page) => page.getByRole('dialog', { name: 'Run a model in this browser' });
const view = (page: Page, name: string) => page.getByRole('navigation', { name: 'Views' }).getByText(name);

async function runHere(page: Page): Promise<void> {
  await button(page, 'Run here').click();
  await button(page, 'Run continuo-mini here').click();
  await dialog(page).getByText('Both open again without a connection').waitFor();
  await page.keyboard.press('Escape');
}

/** Names of built files, with their hash. */
const NAMES = /-([\w-]{8})\.(js|css|svg)\b/g;

/** Serves a site under names of files that each deployment changes. Those of an earlier one are gone. */
async function deployments(url: string) {
  let current = 'a';
  const server = await serve(async (request, response) => {
    const path = request.url!;
    const named = path.replace(new RegExp(`${current}(\\.(?:js|css|svg))$`), '$1');
    const isGone = /^\/assets\/.*\.(?:js|css|svg)$/.test(path) && named === path;
    const answer = await fetch(url + (isGone ? '/assets/none.js' : named), {
      headers: { accept: request.headers.accept ?? '*/*' },
    });
    const body = Buffer.from(await answer.arrayBuffer());
    const { 'content-encoding': _, 'content-length': __, ...headers } = Object.fromEntries(answer.headers);
    const isText = /javascript|html/.test(headers['content-type'] ?? '');
    const changed = () =>
      body.toString().replaceAll(NAMES, `-$1${current}.$2`).replace('"hash":"', `$&${current}`);
    response.writeHead(answer.status, headers).end(isText ? changed() : body);
  });
  return { ...server, deploy: (name: string) => (current = name) };
}

/** The letter that the deployment has put into the names of the document's scripts. */
const deploymentOf = (page: Page): Promise<string | undefined> =>
  page.evaluate(() => document.querySelector<HTMLScriptElement>('script[src]')?.src.at(-4));

test('a tab keeps its files after a deployment, a reload brings the new ones, and page and model open again without a connection, where all views run', async ({
  browser,
  system,
}) => {
  const server = await deployments(system.url);
  const site = { url: server.url, apiKey: system.apiKey };
  const { page, context, consoleErrors, close } = await openPage(browser, site, '/', { key: null });
  await runHere(page);
  server.deploy('b');
  // A view that was not loaded before: its files are no longer on the server.
  await view(page, 'Compare').click();
  await button(page, 'Compare').waitFor();
  await expect.poll(() => deploymentOf(page)).toBe('a');

  await page.reload();
  await expect.poll(() => deploymentOf(page)).toBe('b');
  const waits = () =>
    page.evaluate(async () => (await navigator.serviceWorker.getRegistration())!.waiting !== null);
  await expect.poll(waits).toBe(true);
  await context.setOffline(true);
  await page.reload();
  await expect.poll(() => deploymentOf(page)).toBe('b');
  await runHere(page);
  for (const side of ['A', 'B'])
    await page.getByRole('combobox', { name: `Model of ${side}` }).selectOption('continuo-mini@browser');
  await page.getByRole('textbox', { name: 'Prompt' }).fill(PROMPT);
  await page.keyboard.press('Control+Enter');
  await page.locator('.plot').nth(1).waitFor();

  await view(page, 'Tree').click();
  // Compare has a prompt, too.
  await page.getByRole('heading', { name: 'Tree', exact: true }).waitFor();
  await page.getByRole('textbox', { name: 'Prompt' }).fill(PROMPT);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('treeitem').nth(4).waitFor();
  await page.getByRole('button', { name: 'Stop' }).and(page.locator(':disabled')).waitFor();

  await view(page, 'Playground').click();
  await typeInto(textOf(page), PROMPT);
  await button(page, 'Complete').click();
  await page.getByRole('status').getByText('Finished').waitFor();
  expect(consoleErrors.filter((error) => !error.includes('ERR_INTERNET_DISCONNECTED'))).toEqual([]);
  await close();
  await server.stop();
});
