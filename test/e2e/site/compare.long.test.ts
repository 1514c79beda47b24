import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { tokenDifferences } from '../../../worker/site/compare/token-differences.ts';
import { storedText, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';
import type { System } from '../../support/system.ts';

const PROMPT = 'Once upon a time there was a king who had three daughters.';

interface Choice {
  readonly text: string;
  readonly logprobs: { readonly tokens: string[]; readonly token_logprobs: number[] };
}

/** Requests the same completions from the API. */
async function choicesOf(system: System, fields: Record<string, unknown>): Promise<Choice[]> {
  const response = await fetch(`${system.url}/v1/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', prompt: PROMPT, logprobs: 5, ...fields }),
  });
  return ((await response.json()) as { choices: Choice[] }).choices;
}

const openComparison = (page: Page) => page.getByRole('link', { name: 'Compare' }).click();
const compare = (page: Page) => page.getByRole('button', { name: 'Compare' }).click();
const answer = (page: Page, name: 'A' | 'B') => page.getByRole('region', { name: `Answer of ${name}` });

async function setSide(page: Page, name: 'A' | 'B', fields: Record<string, number>): Promise<void> {
  const side = page.getByRole('region', { name: `Settings of ${name}` });
  for (const [field, value] of Object.entries(fields))
    await typeInto(side.getByRole('spinbutton', { name: field, exact: true }), String(value));
}

const untilDone = (page: Page) =>
  page.getByRole('button', { name: 'Stop' }).and(page.locator(':disabled')).waitFor();

/** A failure would leave nothing to wait for. */
async function untilAnswered(page: Page): Promise<void> {
  await untilDone(page);
  const failures = await page.getByRole('alert').allTextContents();
  expect(failures).toEqual([]);
}

describe('the compare view', () => {
  test('marks exactly the tokens that differ in the answers of the API', async ({ visit, system }) => {
    const { page } = await visit('/');
    const fields = [
      { max_tokens: 64, temperature: 0 },
      { max_tokens: 64, temperature: 0, repetition_penalty: 1.2 },
    ] as const;
    const [left, right] = await Promise.all(fields.map(async (side) => (await choicesOf(system, side))[0]!));
    const differences = tokenDifferences(left!.logprobs.tokens, right!.logprobs.tokens);
    expect(differences.first).not.toBeNull();
    await openComparison(page);
    await page.getByRole('button', { name: /With and without a penalty/ }).click();
    await untilAnswered(page);
    for (const [name, { logprobs }, marks] of [
      ['A', left!, differences.left],
      ['B', right!, differences.right],
    ] as const) {
      const options = answer(page, name).getByRole('option');
      await expect.poll(() => options.allTextContents()).toEqual(logprobs.tokens);
      const marked = () =>
        options.evaluateAll((elements) =>
          elements.map((element) => element.querySelector('.marked') !== null),
        );
      await expect.poll(marked).toEqual(marks);
    }
    await page.getByText(`${differences.equal} tokens in common`).waitFor();
    await page.getByText(`The first difference is token ${differences.first! + 1}.`).waitFor();
  });

  test('the tables have the lengths and log-likelihoods of the samples of the API', async ({
    visit,
    system,
  }) => {
    const { page } = await visit('/');
    const sides = {
      A: { max_tokens: 40, temperature: 0.5, seed: 3 },
      B: { max_tokens: 20, temperature: 1, seed: 4 },
    };
    await openComparison(page);
    await typeInto(page.getByRole('textbox', { name: 'Prompt' }), PROMPT);
    await typeInto(page.getByRole('spinbutton', { name: 'n', exact: true }), '6');
    for (const [name, fields] of Object.entries(sides)) await setSide(page, name as 'A' | 'B', fields);
    await compare(page);
    await untilAnswered(page);
    await page.locator('.plot').nth(1).waitFor();
    for (const [row, fields] of Object.values(sides).entries()) {
      const samples = await choicesOf(system, { ...fields, n: 6 });
      const mean = (of: (choice: Choice) => number) =>
        (samples.reduce((sum, choice) => sum + of(choice), 0) / 6).toFixed(1).replace('-', '−');
      const countAndMean = async (title: string) => {
        const shown = page.getByRole('figure', { name: title }).getByRole('row');
        const cells = await shown
          .nth(row + 1)
          .getByRole('cell')
          .allTextContents();
        return cells.slice(0, 2);
      };
      const sum = ({ logprobs }: Choice) =>
        logprobs.token_logprobs.reduce((total, value) => total + value, 0);
      const length = mean(({ logprobs }) => logprobs.tokens.length);
      await expect.poll(() => countAndMean('Length')).toEqual(['6', length]);
      await expect.poll(() => countAndMean('Log-likelihood')).toEqual(['6', mean(sum)]);
    }
  });

  test('each side has its own dialect, and a retry of a failed side leaves the other one as it is', async ({
    visit,
  }) => {
    const { page } = await visit('/');
    const dialects: (string | undefined)[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/completions')) dialects.push(request.headers()['x-dialect']);
    });
    const error = {
      message: 'Loading model.',
      type: 'server_error',
      param: null,
      code: 'server_is_overloaded',
    };
    let loading = true;
    await page.route('**/v1/completions', (route) => {
      const request = route.request();
      if (loading && request.headers()['x-dialect'] === 'llamacpp')
        return route.fulfill({ status: 503, json: { error } });
      // A random sample can end before its first token.
      const body: Record<string, unknown> = request.postDataJSON();
      return route.continue({ postData: JSON.stringify({ ...body, seed: 1 }) });
    });
    await openComparison(page);
    await page.getByRole('button', { name: /Two dialects/ }).click();
    await answer(page, 'B').getByRole('alert').waitFor();
    await untilDone(page);
    expect(dialects.toSorted()).toEqual(['llamacpp', 'openai']);
    const tokensOf = (name: 'A' | 'B') => answer(page, name).getByRole('option');
    await expect.poll(() => tokensOf('A').count()).toBeGreaterThan(5);
    const kept = await tokensOf('A').allTextContents();
    loading = false;
    await answer(page, 'B').getByRole('button', { name: 'Retry' }).click();
    await expect.poll(() => tokensOf('B').count()).toBeGreaterThan(5);
    await untilAnswered(page);
    await expect.poll(() => tokensOf('A').allTextContents()).toEqual(kept);
    expect(dialects).toHaveLength(3);
  });

  test('alternatives are those of the shown sample', async ({ visit }) => {
    const { page } = await visit('/');
    const choices = ['One', 'Two'].map((text, index) => ({
      index,
      text,
      finish_reason: 'stop',
      logprobs: {
        tokens: [text],
        token_logprobs: [-1],
        text_offset: [0],
        top_logprobs: [{ [text]: -1 }],
      },
    }));
    const body = `data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`;
    await page.route('**/v1/completions', (route) =>
      route.fulfill({ contentType: 'text/event-stream', body }),
    );
    await openComparison(page);
    await typeInto(page.getByRole('textbox', { name: 'Prompt' }), PROMPT);
    await typeInto(page.getByRole('spinbutton', { name: 'n', exact: true }), '2');
    await compare(page);
    await answer(page, 'A').getByRole('listbox').press('ArrowRight');
    const head = page.getByRole('region', { name: 'Alternatives' }).locator('.alternatives-head code');
    await expect.poll(() => head.textContent()).toBe('One');
    await page.getByRole('button', { name: 'Next' }).press('Enter');
    await expect.poll(() => answer(page, 'A').getByRole('option').allTextContents()).toEqual(['Two']);
    await expect.poll(() => head.textContent()).toBe('Two');
  });

  test('two tabs keep a prompt and sides each over a reload', async ({ visit, system }) => {
    const { page, context } = await visit('/');
    const other = await context.newPage();
    await other.goto(system.url);
    const tabs = [
      [page, 'first'],
      [other, 'second'],
    ] as const;
    for (const [tab, text] of tabs) {
      await openComparison(tab);
      await typeInto(tab.getByRole('textbox', { name: 'Prompt' }), text);
    }
    await setSide(page, 'B', { top_k: 7 });
    for (const [, text] of tabs) await expect.poll(() => storedText(page)).toContain(text);
    for (const [tab, text] of tabs) {
      await tab.reload();
      await expect.poll(() => tab.getByRole('textbox', { name: 'Prompt' }).inputValue()).toBe(text);
    }
    const side = page.getByRole('region', { name: 'Settings of B' });
    await expect.poll(() => side.getByRole('spinbutton', { name: 'top_k' }).inputValue()).toBe('7');
  });
});
