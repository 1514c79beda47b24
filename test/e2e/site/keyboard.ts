import type { Locator, Page } from 'playwright-core';
import type { System } from '../../support/system.ts';

/** What walks by keyboard through the views of keys share. */

/** Sends a request to the admin API, or to that of an account. */
export async function call<T>(
  { url, apiKey }: Pick<System, 'url' | 'apiKey'>,
  path: string,
  body?: object,
  method = 'POST',
): Promise<T> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(url + path, { method, headers, ...sent });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

export const LONG_NAME = 'A name that was pasted from a ticket with all its words, '
  .repeat(4)
  .slice(0, 200)
  .trim();

/** Presses Tab until an element has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.first().waitFor();
  const isFocused = () => target.first().evaluate((element) => element === document.activeElement);
  for (let presses = 0; !(await isFocused()); presses += 1) {
    if (presses > 100) throw new Error(`Tab does not reach ${target}.`);
    await page.keyboard.press('Tab');
  }
}

export async function enter(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Enter');
}

/** Goes to a field and replaces its text. */
export async function typeInto(page: Page, target: Locator, text: string): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type(text);
}

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

export const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true });
