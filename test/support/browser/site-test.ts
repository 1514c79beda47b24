import type { Browser } from 'playwright-core';
import { later } from '../for-tests.ts';
import { starting } from '../run/shared-starts.ts';
import { systemTest } from '../shared-system.ts';
import { findChromium } from './chromium.ts';
import { launchChromium, openPage, type PageOptions, type SitePage } from './site-page.ts';

const CHROMIUM = findChromium();

interface Fixtures {
  /** One per worker process of vitest. */
  browser: Browser;
  /** Opens a page of the site. It is closed after the test. */
  visit: (location: string, options?: PageOptions) => Promise<SitePage>;
}

const browserTest = systemTest.extend<Fixtures>({
  browser: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the used fixtures from it
    async ({}, use) => {
      const browser = await starting(() => launchChromium(CHROMIUM!));
      await use(browser);
      await browser.close();
    },
    { scope: 'worker' },
  ],
  visit: async ({ browser, system }, use) => {
    const opened: SitePage[] = [];
    await use(async (location, options) => {
      const site = await openPage(browser, system, location, options);
      opened.push(site);
      return site;
    });
    for (const site of opened) await site.close();
  },
});

/** `test` of vitest with the real stack and a browser. Skipped where no Chromium is installed. */
export const siteTest = browserTest.skipIf(CHROMIUM === null);

/** Opens one page for the tests of a file or group. Each goes on where the one before has ended. */
export function sharedVisit(location: string, options?: PageOptions): SitePage {
  let site: SitePage;
  browserTest.beforeAll(async ({ browser, system }) => {
    site = await openPage(browser, system, location, options);
  });
  browserTest.afterAll(() => site.close());
  return later(() => site);
}
