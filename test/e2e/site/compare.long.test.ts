import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { tokenDifferences } from '../../../worker/site/compare/token-differences.ts';
import { typeInto } from '../../support/browser/site-page.ts';
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

  test('each side has its own dialect, a retry leaves the other side as it is, and alternatives are those of the shown sample', async ({
    visit,
  }) => {
    const { page } = await visit('/');
    const dialects: (string | undefined)[] = [];
    const choicesFrom = (at: number) =>
      [`One${at}`, `Two${at}`].map((text, index) => ({
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
    const error = { message: 'Busy.', type: 'server_error', param: null, code: 'server_is_overloaded' };
    let loading = true;
    await page.route('**/v1/completions', (route) => {
      const dialect = route.request().headers()['x-dialect'];
      dialects.push(dialect);
      if (loading && dialect === 'llamacpp') return route.fulfill({ status: 503, json: { error } });
      const choices = choicesFrom(dialects.length);
      const body = `data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`;
      return route.fulfill({ contentType: 'text/event-stream', body });
    });
    await openComparison(page);
    await page.getByRole('button', { name: /Two dialects/ }).click();
    await answer(page, 'B').getByRole('alert').waitFor();
    await untilDone(page);
    expect(dialects.toSorted()).toEqual(['llamacpp', 'openai']);
    const tokensOf = (name: 'A' | 'B') => answer(page, name).getByRole('option').allTextContents();
    const kept = await tokensOf('A');
    expect(kept).toEqual([expect.stringMatching(/^One[12]$/)]);
    loading = false;
    await answer(page, 'B').getByRole('button', { name: 'Retry' }).click();
    await expect.poll(() => tokensOf('B')).toEqual(['One3']);
    await untilAnswered(page);
    const keptAfterRetry = await tokensOf('A');
    expect(keptAfterRetry).toEqual(kept);
    expect(dialects).toHaveLength(3);

    await answer(page, 'B').getByRole('listbox').press('ArrowRight');
    const head = page.getByRole('region', { name: 'Alternatives' }).locator('.alternatives-head code');
    await expect.poll(() => head.textContent()).toBe('One3');
    await page.getByRole('button', { name: 'Next' }).press('Enter');
    await expect.poll(() => tokensOf('B')).toEqual(['Two3']);
    await expect.poll(() => head.textContent()).toBe('Two3');
  });
});
