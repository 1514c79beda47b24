import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import * as z from 'zod';
import { typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a king';

const textOf = (page: Page) => page.getByRole('textbox', { name: 'Text' });
const complete = (page: Page) => page.getByRole('button', { name: 'Complete' }).click();
const status = (page: Page) => page.getByRole('status');
/** The text as the editor shows it. */
const shown = async (page: Page) => (await textOf(page).locator('.cm-line').allTextContents()).join('\n');

/** Replaces the parameters that the page stored, then reloads it with the key. */
async function visitWith(page: Page, parameters: Record<string, unknown>, link: string): Promise<void> {
  await page.evaluate(
    (value) =>
      new Promise<void>((resolve, reject) => {
        const opening = indexedDB.open('continuo');
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const transaction = opening.result.transaction('values', 'readwrite');
          transaction.objectStore('values').put(value, 'playground-parameters');
          transaction.oncomplete = () => resolve();
        };
      }),
    parameters,
  );
  await page.reload();
  // A change of the fragment only.
  await page.goto(link);
}

describe('the playground', () => {
  test('continues the text in place, token by token, one undo takes the completion back, and a stop frees the slot', async ({
    visit,
    system,
  }) => {
    const { page } = await visit('/');
    // Long enough for many frames of a busy machine.
    await visitWith(page, { max_tokens: 400, ignore_eos: true }, `${system.url}/#key=${system.apiKey}`);
    await typeInto(textOf(page), PROMPT);
    const lengths = await page.evaluateHandle(() => [] as number[]);
    await page.evaluate((seen) => {
      const root = document.querySelector('.text-editor')!.shadowRoot!;
      new MutationObserver(() => seen.push(root.querySelectorAll('.token').length)).observe(root, {
        childList: true,
        subtree: true,
      });
    }, lengths);
    await complete(page);
    await status(page).getByText('Finished: length').waitFor();
    const counts = await lengths.jsonValue();
    expect(new Set(counts).size).toBeGreaterThan(5);
    expect(counts.at(-1)).toBeGreaterThan(60);
    await expect.poll(() => shown(page)).toMatch(new RegExp(`^${PROMPT}`));
    await textOf(page).press('Control+z');
    await expect.poll(() => shown(page)).toBe(PROMPT);

    await typeInto(page.getByLabel('max_tokens', { exact: true }), '1900');
    await complete(page);
    await status(page).getByText('Streaming').waitFor();
    await expect.poll(() => runningSequences(system)).toBe(1);
    await page.keyboard.press('Escape');
    await status(page).getByText('Stopped').waitFor();
    await expect.poll(() => runningSequences(system)).toBe(0);
  });

  test('an alternative has a token id, a click puts it in place of the token, and a reload keeps all but the key', async ({
    visit,
    system,
  }) => {
    const { page } = await visit('/');
    await visitWith(page, { max_tokens: 20, temperature: 0 }, `${system.url}/#key=${system.apiKey}`);
    await typeInto(textOf(page), PROMPT);
    await complete(page);
    await status(page).getByText('Finished').waitFor();
    await textOf(page).locator('.token').nth(5).hover();
    const alternatives = page.getByRole('region', { name: 'Alternatives' });
    const [fifth] = (await textOf(page).locator('.token').nth(5).allTextContents()) as [string];
    const text = await shown(page);
    const before = text.slice(PROMPT.length, text.indexOf(` ${fifth}`, PROMPT.length));
    const other = alternatives.getByRole('button').first();
    const name = (await other.locator('code').textContent())!.replaceAll('·', ' ');
    const id = Number((await other.locator('.id').textContent())!.replace('id ', ''));
    const nameOfId = await detokenized(system, id);
    expect(nameOfId).toBe(name);
    await other.click();
    await expect.poll(() => shown(page)).toContain(PROMPT + before + name);
    await status(page).getByText('Finished').waitFor();
    const length = async () => (await shown(page)).length;
    await expect.poll(length).toBeGreaterThan((PROMPT + before + name).length + 20);

    const kept = await textOf(page).innerHTML();
    await page.reload();
    await textOf(page).waitFor();
    await expect.poll(() => textOf(page).innerHTML()).toBe(kept);
    await complete(page);
    await page.getByText('This page has no API key').waitFor();
  });
});

test('a change whose writing the reload cuts off is kept', async ({ visit }) => {
  const { page } = await visit('/');
  await textOf(page).waitFor();
  const cut = await page.evaluateHandle(() => {
    const { put } = IDBObjectStore.prototype;
    const seen: string[] = [];
    // As browsers do with what a page that is left writes.
    IDBObjectStore.prototype.put = function (value, key) {
      const request = put.call(this, value, key);
      this.transaction.abort();
      seen.push(JSON.stringify(value));
      return request;
    };
    return seen;
  });
  await typeInto(textOf(page), PROMPT);
  await expect.poll(() => cut.jsonValue()).toContainEqual(expect.stringContaining(PROMPT));
  await page.reload();
  await expect.poll(() => shown(page)).toBe(PROMPT);
});

async function detokenized({ url, apiKey }: { url: string; apiKey: string }, id: number): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${url}/detokenize`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ tokens: [id] }),
  });
  return z.object({ prompt: z.string() }).parse(await response.json()).prompt;
}

/** Returns how many sequences the origin generates, by its metrics. */
async function runningSequences({ metricsUrl }: { readonly metricsUrl: string }): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  return Number(/^continuo_origin_running_sequences\S* (\d+)/m.exec(text)?.[1]);
}
