import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { tokenDifferences } from '../../../worker/site/compare/token-differences.ts';
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
const answer = (page: Page, name: 'A' | 'B') => page.getByRole('region', { name: `Answer of ${name}` });

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

  test('the alternatives are those of the shown sample', async ({ visit }) => {
    const { page } = await visit('/');
    const choices = ['One', 'Two'].map((text, index) => {
      const token = { tokens: [text], token_logprobs: [-1], text_offset: [0] };
      const logprobs = { ...token, top_logprobs: [{ [text]: -1 }] };
      return { index, text, finish_reason: 'stop', logprobs };
    });
    const body = `data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`;
    await page.route('**/v1/completions', (route) =>
      route.fulfill({ contentType: 'text/event-stream', body }),
    );
    await openComparison(page);
    await page.getByRole('button', { name: /Two dialects/ }).click();
    await untilAnswered(page);
    await answer(page, 'B').getByRole('listbox').press('ArrowRight');
    const head = page.getByRole('region', { name: 'Alternatives' }).locator('.alternatives-head code');
    await expect.poll(() => head.textContent()).toBe('One');
    await page.getByRole('button', { name: 'Next' }).press('Enter');
    await expect.poll(() => answer(page, 'B').getByRole('option').allTextContents()).toEqual(['Two']);
    await expect.poll(() => head.textContent()).toBe('Two');
  });
});
