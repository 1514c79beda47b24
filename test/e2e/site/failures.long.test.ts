import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { storedText, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';
import type { System } from '../../support/system.ts';

const PROMPT = 'Once upon a time';
const textOf = (page: Page) => page.getByRole('textbox', { name: 'Text' });
const status = (page: Page) => page.getByRole('status');
const notice = (page: Page) => page.getByRole('alert');

async function startCompletion(page: Page): Promise<void> {
  await typeInto(textOf(page), PROMPT);
  await page.getByRole('button', { name: 'Complete' }).click();
}

/** Returns a key of a tenant with this limit of requests per minute. */
async function limitedKey({ url, apiKey }: System, requestsPerMinute: number): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`${url}/admin/v1/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as { key: string };
  };
  const tenant = `visitor-${requestsPerMinute}`;
  await post('tenants', {
    id: tenant,
    name: 'Visitor',
    limits: { requests_per_minute: requestsPerMinute },
  });
  const made = await post('keys', { tenant, name: 'page', scopes: ['completions', 'models'] });
  return made.key;
}

describe('a failure says what happened and what to do', () => {
  test('a refused key, or no network: the text is kept, and another key or a retry works', async ({
    visit,
    system,
  }) => {
    const { page, context } = await visit('/', { key: 'sk-wrong' });
    await startCompletion(page);
    await notice(page).getByText('The server refused the key').waitFor();
    await notice(page).getByRole('button', { name: 'Enter a key' }).click();
    await typeInto(page.getByLabel('Key', { exact: true }), system.apiKey);
    await page.getByRole('button', { name: 'Use this key' }).click();
    await context.setOffline(true);
    await page.getByRole('button', { name: 'Complete' }).click();
    await notice(page).getByText('This device is offline', { exact: true }).waitFor();
    await context.setOffline(false);
    await notice(page).getByRole('button', { name: 'Retry' }).click();
    await status(page).getByText('Finished').waitFor();
    await notice(page).waitFor({ state: 'detached' });
    await expect.poll(() => textOf(page).textContent()).toContain(PROMPT);
  });

  test('a rate limit: the retry counts down', async ({ visit, system }) => {
    const { page } = await visit('/', { key: await limitedKey(system, 1) });
    // The one request is for the completion, however slowly the text is written.
    await page.route('**/tokenize', (route) => route.abort());
    await startCompletion(page);
    await status(page).getByText('Finished').waitFor();
    await page.getByText('limit 0/1').waitFor();
    // On a busy machine the minute may be over, or nearly so.
    const secondsToWait = async () => {
      const answer = page.waitForResponse('**/v1/completions');
      await page.getByRole('button', { name: 'Complete' }).click();
      return Number((await answer).headers()['retry-after'] ?? 0);
    };
    await expect.poll(secondsToWait).toBeGreaterThan(20);
    await notice(page).getByText('Too many requests').waitFor();
    const retry = notice(page).getByRole('button', { name: 'Retry' });
    await expect.poll(() => retry.isDisabled()).toBe(true);
    await expect.poll(() => retry.textContent()).toMatch(/^Retry in \d+ s$/);
    const before = await retry.textContent();
    await expect.poll(() => retry.textContent()).not.toBe(before);
  });

  test('counts of tokens leave few requests for completions', async ({ visit, system }) => {
    const { page, requestedUrls } = await visit('/', { key: await limitedKey(system, 3) });
    const begun = performance.now();
    // All at once: between two keys, a busy machine may pause for so long that the first ones are counted.
    await textOf(page).fill(PROMPT);
    await page.getByText(/^Prompt: \d+ of/).waitFor();
    await page.getByText('limit 2/3').waitFor();
    await page.keyboard.type(' in');
    await page.getByText('Prompt:').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Complete' }).click();
    await status(page).getByText('Finished').waitFor();
    // On a busy machine, the count may be more than a minute ago.
    if (performance.now() - begun < 60_000) await page.getByText('limit 1/3').waitFor();
    expect(requestedUrls.filter((url) => url.endsWith('/tokenize'))).toHaveLength(1);
  });

  test('an origin that dies in mid-stream: what came is kept, and a retry continues', async ({
    visit,
    system,
  }) => {
    // The editor renders only the lines that are in view.
    const { page } = await visit('/', { height: 4_000 });
    await textOf(page).waitFor();
    await page.route(
      '**/v1/completions',
      (route) => {
        const body: Record<string, unknown> = route.request().postDataJSON();
        return route.continue({ postData: JSON.stringify({ ...body, ignore_eos: true }) });
      },
      { times: 1 },
    );
    await typeInto(page.getByLabel('max_tokens', { exact: true }), '1900');
    await startCompletion(page);
    await status(page).getByText('Streaming').waitFor();
    process.kill(system.originPid(), 'SIGKILL');
    await notice(page).getByText('The model server failed').waitFor();
    const kept = await textOf(page).textContent();
    expect(kept!.length).toBeGreaterThan(PROMPT.length);
    await typeInto(page.getByLabel('max_tokens', { exact: true }), '20');
    await expect
      .poll(async () => {
        const retry = notice(page).getByRole('button', { name: 'Retry', exact: true });
        // The page may retry by itself in between, and the button is gone then.
        if (await retry.isVisible()) await retry.click({ timeout: 5_000 }).catch(() => {});
        return status(page).textContent();
      })
      .toContain('Finished');
    await expect.poll(() => textOf(page).textContent()).toContain(kept!.slice(0, -1));
  });

  test('a model that loads after the stream has begun, in a dialect without names: the page waits, then retries', async ({
    visit,
  }) => {
    const { page } = await visit('/');
    const error = { message: 'The model is loading.', type: 'unavailable_error', param: null, code: 503 };
    await page.route('**/v1/completions', (route) =>
      route.fulfill({
        contentType: 'text/event-stream',
        body: `data: ${JSON.stringify({ error })}\n\ndata: [DONE]\n\n`,
      }),
    );
    await startCompletion(page);
    await notice(page).getByText('The model is loading', { exact: true }).waitFor();
    await notice(page).getByRole('button', { name: 'Retry in 2 s' }).waitFor();
    await page.unroute('**/v1/completions');
    await status(page).getByText('Finished').waitFor();
    await notice(page).waitFor({ state: 'detached' });
  });

  test('the key is in no address, no storage and no log, unless the visitor keeps it', async ({
    visit,
    system,
  }) => {
    const site = await visit('/');
    await startCompletion(site.page);
    await status(site.page).getByText('Finished').waitFor();
    expect(site.page.url()).not.toContain(system.apiKey);
    expect(site.requestedUrls.filter((url) => url.includes(system.apiKey))).toEqual([]);
    await expect.poll(() => storedText(site.page)).toContain(PROMPT);
    const stored = await storedText(site.page);
    expect(stored).not.toContain(system.apiKey);
    expect(system.log('worker') + system.log('origin')).not.toContain(system.apiKey);

    await site.page.getByRole('button', { name: /^Key/ }).click();
    await site.page.getByLabel('Keep the key on this device').check();
    await expect.poll(() => storedText(site.page)).toContain(system.apiKey);
    await site.page.getByLabel('Keep the key on this device').uncheck();
    await expect.poll(() => storedText(site.page)).not.toContain(system.apiKey);
  });
});
