import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { storedText, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time';
const textOf = (page: Page) => page.getByRole('textbox', { name: 'Text' });
const status = (page: Page) => page.getByRole('status');
const notice = (page: Page) => page.getByRole('alert');

async function startCompletion(page: Page): Promise<void> {
  await typeInto(textOf(page), PROMPT);
  await page.getByRole('button', { name: 'Complete' }).click();
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
