import { expect } from 'vitest';
import { OTHER_HOST, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

const PROMPT = 'Once upon a time there was a "king"\nwho didn\'t say \\n';

test('what the page sends is shown, copied without the key, and can be left out', async ({
  visit,
  system,
}) => {
  const { page } = await visit('/');
  await page.getByLabel('Preset').selectOption('Most likely');
  await typeInto(page.getByRole('textbox', { name: 'Text' }), 'Once upon a ti');
  await page.locator('summary', { hasText: 'Logprobs' }).click();
  const control = (name: string) => page.getByLabel(name, { exact: true });
  const shown = async () => [
    await control('token_healing').inputValue(),
    await control('logprobs').inputValue(),
    await control('return_token_ids').inputValue(),
  ];
  const sent = async () => {
    const request = page.waitForRequest('**/v1/completions');
    await page.keyboard.press('Control+Enter');
    // The seed comes from the test.
    const { stream: _, stream_options: __, seed: ___, ...body } = (await request).postDataJSON();
    await page.getByRole('status').getByText('Finished').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    return body;
  };
  const copied = async () => {
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Copy as code…' }).click();
    const code = (await page.locator('.code-block code').textContent())!;
    expect(code).not.toContain(system.apiKey);
    await page.keyboard.press('Escape');
    return JSON.parse(/-d '(.*)'$/s.exec(code)![1]!);
  };
  await expect.poll(shown).toEqual(['true', '5', 'true']);
  const fields = { token_healing: true, logprobs: 5, return_token_ids: true };
  const body = await copied();
  expect(body).toEqual({
    model: 'default',
    prompt: 'Once upon a ti',
    max_tokens: 64,
    temperature: 0,
    ...fields,
  });
  const first = await sent();
  expect(first).toEqual(body);

  await control('token_healing').selectOption('default');
  await control('logprobs').fill('');
  await control('return_token_ids').selectOption('false');
  const changed = await copied();
  expect(changed).toEqual({
    ...body,
    token_healing: undefined,
    logprobs: undefined,
    return_token_ids: false,
  });
  const second = await sent();
  expect(second).toEqual(changed);
  await page.reload();
  await expect.poll(shown).toEqual(['', '', 'false']);
});

test('over plain HTTP from another host, the code is selected in place of a clipboard, and the tree grows', async ({
  visit,
}) => {
  const { page, consoleErrors } = await visit('/', { host: OTHER_HOST });
  await typeInto(page.getByRole('textbox', { name: 'Text' }), PROMPT);
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name: 'Copy as code…' }).click();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  const code = await page.locator('.code-block code').textContent();
  await expect.poll(() => page.evaluate('getSelection().toString()')).toBe(code);
  await page.keyboard.press('Escape');
  const isSecure = await page.evaluate('isSecureContext');
  expect(isSecure).toBe(false);
  await page.getByRole('link', { name: 'Tree' }).click();
  await typeInto(page.getByRole('textbox', { name: 'Prompt' }), 'Once upon a time');
  await page.getByRole('button', { name: 'Start the tree' }).click();
  await page.getByRole('treeitem').nth(1).waitFor();
  await page.getByRole('button', { name: 'Stop' }).and(page.locator(':disabled')).waitFor();
  await expect.poll(() => page.locator('.reading-text').textContent()).toContain('Once upon a time');
  expect(consoleErrors).toEqual([]);
});
