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
