import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const dialog = (page: Page) => page.getByRole('dialog', { name: 'Run a model in this browser' });

/**
 * Requests that a browser and a server answer with the same tokens. Both round activations, and processors
 * sum in different orders, so the best logit of each step is ahead by 0.14 or more.
 */
const REQUESTS = [
  { prompt: 'def fibonacci(n):', temperature: 0, max_tokens: 48 },
  { prompt: 'It was a dark', temperature: 0, max_tokens: 32, stop: [' and'] },
  { prompt: PROMPT, temperature: 0.7, seed: 7, max_tokens: 8 },
  {
    prompt: 'A person as JSON:',
    temperature: 0,
    max_tokens: 64,
    json_schema: {
      type: 'object',
      properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', maximum: 99 } },
      required: ['name', 'age'],
      additionalProperties: false,
    },
  },
];

/** Sends requests to a thread of the page's model, as the page does. */
const askThread = (page: Page, url: string, bodies: readonly object[]): Promise<string[]> =>
  page.evaluate(
    ([address, requests]) =>
      new Promise<string[]>((resolve, reject) => {
        const thread = new Worker(address as string, { type: 'module' });
        const texts = (requests as object[]).map(() => '');
        let open = texts.length;
        thread.addEventListener('error', ({ message }) => reject(new Error(message)));
        thread.addEventListener('message', ({ data }) => {
          if (data.type === 'failed') reject(new Error(data.message));
          if (data.type === 'opened')
            for (const [id, body] of (requests as object[]).entries())
              thread.postMessage({ type: 'request', id, body: JSON.stringify(body), dialect: null });
          if (data.type === 'text') texts[data.id] += data.text;
          if (data.type === 'end' && --open === 0) {
            thread.terminate();
            resolve(texts);
          }
        });
        thread.postMessage({ type: 'open-built-in', device: 'wasm' });
      }),
    [url, bodies] as const,
  );

test('a directory that is no model is refused by name, and with a full storage, the built-in one gives the tokens of the server, also without a connection', async ({
  visit,
  system,
}) => {
  const site = await visit('/');
  const { page, context } = site;
  const protocol = await context.newCDPSession(page);
  await protocol.send('Storage.overrideQuotaForOrigin', { origin: system.url, quotaSize: 1_000_000 });
  await button(page, 'Run here').click();
  await dialog(page).getByText('28 MB together').waitFor();
  await dialog(page).locator('input[type=file]').setInputFiles('docs/decisions');
  await dialog(page)
    .getByText('decisions is no model: model.onnx, config.json, tokenizer.json missing')
    .waitFor();
  expect(await site.violations()).toEqual([]);
  await button(page, 'Run continuo-mini here').click();
  await dialog(page).getByText('continuo-mini runs on the processor').waitFor();
  await dialog(page).getByText("This browser's storage is full or blocked").waitFor();
  await site.screenshot('run-here');
  expect(await site.violations()).toEqual([]);

  const thread = site.requestedUrls.find((url) => /\/assets\/main-[^/]+\.js$/.test(url))!;
  const bodies = REQUESTS.map((request) => ({ model: 'continuo-mini', ...request }));
  const local = (await askThread(page, thread, bodies)).map((text) => JSON.parse(text).choices[0]);
  for (const [index, body] of bodies.entries()) {
    const response = await system.request('/v1/completions', body);
    const { choices } = (await response.json()) as { choices: [object] };
    expect(local[index], JSON.stringify(body)).toEqual(choices[0]);
  }

  // From here on without a server.
  await page.keyboard.press('Escape');
  await context.setOffline(true);
  await typeInto(page.getByRole('textbox', { name: 'Text' }), PROMPT);
  await button(page, 'Complete').click();
  await page.getByRole('status').getByText('Finished').waitFor();
  expect(site.consoleErrors).toEqual([]);
});
