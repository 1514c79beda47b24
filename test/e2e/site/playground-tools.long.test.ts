import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const textOf = (page: Page) => page.getByRole('textbox', { name: 'Text' });
const status = (page: Page) => page.getByRole('status');
const shown = async (page: Page) =>
  (await textOf(page).locator('.cm-line').allTextContents()).join('\n').replace('insert here', '');

describe('the playground', () => {
  test('an infill goes between the text before and after the mark', async ({ visit }) => {
    const { page } = await visit('/');
    const [before, after] = ['def double(n):\n    result = ', '\n    return result'];
    await page.getByLabel('Preset').selectOption('Most likely');
    // The editor indents the line after the mark by itself.
    await typeInto(textOf(page), `${before}\nreturn result`);
    await textOf(page).press('Control+Home');
    for (let index = 0; index < before.length; index += 1) await page.keyboard.press('ArrowRight');
    await page.getByRole('button', { name: 'Insert at cursor' }).click();
    const sent = page.waitForRequest((request) => request.url().endsWith('/v1/completions'));
    await textOf(page).press('Control+Enter');
    expect((await sent).postDataJSON()).toMatchObject({ prompt: before, suffix: after });
    await status(page).getByText('Finished').waitFor();
    const text = await shown(page);
    expect(text.startsWith(before)).toBe(true);
    expect(text.endsWith(after)).toBe(true);
    expect(text.length).toBeGreaterThan(before.length + after.length);
  });

  test('scoring shows the probabilities and the perplexity of the text that the API returns', async ({
    visit,
    system,
  }) => {
    const { page } = await visit('/');
    const text = 'The king had three daughters.';
    await typeInto(textOf(page), text);
    await page.getByRole('button', { name: 'Score text' }).click();
    await status(page).getByText('Finished').waitFor();
    const response = await fetch(`${system.url}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'default', prompt: text, max_tokens: 0, echo: true, logprobs: 1 }),
    });
    const { choices } = (await response.json()) as {
      choices: { logprobs: { tokens: string[]; token_logprobs: (number | null)[] } }[];
    };
    const { tokens, token_logprobs } = choices[0]!.logprobs;
    const known = token_logprobs.filter((logprob) => logprob !== null);
    const perplexity = Math.exp(-known.reduce((sum, one) => sum + one, 0) / known.length);
    const line = `Perplexity ${perplexity.toFixed(2)} over ${tokens.length} tokens`;
    await page.getByText(line, { exact: true }).waitFor();
    await expect
      .poll(() => textOf(page).locator('.token').allTextContents())
      .toEqual(tokens.map((name) => name.trimStart() || name));
    await expect.poll(() => shown(page)).toBe(text);
  });

  test('a preset takes the place of what a slider or a faulty number shows', async ({ visit }) => {
    const { page } = await visit('/');
    const written = page.getByRole('textbox', { name: 'temperature', exact: true });
    await page.getByRole('slider', { name: 'temperature', exact: true }).press('ArrowRight');
    await expect.poll(() => written.inputValue()).toBe('0.81');
    await page.getByLabel('Preset').selectOption('Most likely');
    await expect.poll(() => written.inputValue()).toBe('0');
    await typeInto(written, '0.');
    await expect.poll(() => written.inputValue()).toBe('0.');
    await page.keyboard.type('9x');
    await page.getByRole('alert').getByText('0.9x is not a number.').waitFor();
    await page.getByLabel('Preset').focus();
    await page.getByLabel('Preset').selectOption('Story');
    await expect.poll(() => written.inputValue()).toBe('0.8');
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });

  test('a wrong schema is marked at its place, and a right one constrains the text', async ({ visit }) => {
    const { page } = await visit('/');
    await typeInto(textOf(page), 'A king as JSON:');
    await page.locator('summary', { hasText: 'Constraint' }).click();
    await page.getByRole('button', { name: 'Edit schema' }).click();
    const dialog = page.getByRole('dialog');
    const editor = dialog.getByRole('textbox', { name: 'Constraint' });
    await typeInto(editor, '{"type": "object", "properties": {"a": {"type": "strin"}}}');
    await dialog.getByText('#/properties/a/type').waitFor();
    await expect.poll(() => editor.locator('.cm-lintRange-error').textContent()).toBe('"strin"');
    await typeInto(editor, '{"enum": ["Arthur", ]}');
    await dialog.getByText('at line 1').waitFor();
    await typeInto(editor, '{"enum": ["Arthur"]}');
    await dialog.getByText('Valid').waitFor();
    await dialog.getByRole('button', { name: 'Use this constraint' }).click();
    await page.getByRole('button', { name: 'Complete' }).click();
    await status(page).getByText('Finished: stop').waitFor();
    await expect.poll(() => shown(page)).toMatch(/^A king as JSON:\s*"Arthur"$/);
  });
});
