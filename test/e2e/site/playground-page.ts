import type { Page } from 'playwright-core';
import { type SitePage, typeInto } from '../../support/browser/site-page.ts';

/** What the tests of the view Playground find on it. */

export const PROMPT = 'Once upon a time there was a king';

export const textOf = (page: Page) => page.getByRole('textbox', { name: 'Text' });
export const status = (page: Page) => page.getByRole('status');
export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
export const popover = (page: Page) => page.getByRole('region', { name: 'Alternatives' });
/** The text as the editor shows it. */
export const shown = async (page: Page) =>
  (await textOf(page).locator('.cm-line').allTextContents()).join('\n');

export async function complete(page: Page): Promise<void> {
  await typeInto(textOf(page), PROMPT);
  await page.keyboard.press('Control+Enter');
  await status(page).getByText('Finished').waitFor();
}

/** Loads the page again as on a busy machine: what it does with a timer, also after a paint, comes late. */
export async function withLateTimers({ page, context }: SitePage, lateMs = 1_000): Promise<void> {
  await context.addInitScript((added) => {
    const inTime = setTimeout;
    const late = (run: () => void, ms = 0) => inTime(run, ms + added);
    Reflect.set(globalThis, 'setTimeout', late);
  }, lateMs);
  await page.reload();
}
