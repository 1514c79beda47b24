import type { Browser } from 'playwright-core';
import { test } from 'vitest';
import { type System, startSystem } from '../system.ts';
import { findChromium } from './chromium.ts';
import { launchChromium, openPage, type PageOptions, type SitePage } from './site-page.ts';

const CHROMIUM = findChromium();

interface Fixtures {
  /** The whole product, started once per test file. */
  system: System;
  browser: Browser;
  /** Opens a page of the site. It is closed after the test. */
  visit: (location: string, options?: PageOptions) => Promise<SitePage>;
}

/** `test` of vitest with the real stack and a browser. The tests are skipped where no Chromium is installed. */
export const siteTest = test
  .extend<Fixtures>({
    system: [
      // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the used fixtures from it
      async ({}, use) => {
        const system = await startSystem();
        await use(system);
        await system.stop();
      },
      { scope: 'file' },
    ],
    browser: [
      // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the used fixtures from it
      async ({}, use) => {
        const browser = await launchChromium(CHROMIUM!);
        await use(browser);
        await browser.close();
      },
      { scope: 'file' },
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
  })
  .skipIf(CHROMIUM === null);
