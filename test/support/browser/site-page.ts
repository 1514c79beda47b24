import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { TEST_SEED } from '../random.ts';
import { WAIT_LIMIT_MS } from '../run/time-limits.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Browsers do not trust its pages over plain HTTP, as they do those of this machine. */
export const OTHER_HOST = 'other-host.test';

const ARGUMENTS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  `--host-resolver-rules=MAP ${OTHER_HOST} 127.0.0.1`,
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

/** @param more arguments of the browser */
export const launchChromium = (executablePath: string, more: readonly string[] = []): Promise<Browser> =>
  chromium.launch({ executablePath, args: [...ARGUMENTS, ...more], headless: true });

/** Where the endpoint listens, and a valid key. */
export interface SiteAddress {
  readonly url: string;
  readonly apiKey: string;
}

export interface PageOptions {
  readonly scheme?: 'light' | 'dark';
  /** Size of the window in CSS pixels. */
  readonly width?: number;
  readonly height?: number;
  /** Whether the device has a touch screen. */
  readonly touch?: boolean;
  /** Key in the link's fragment. If absent, the development key; null = none. */
  readonly key?: string | null;
  /** Host name in the address. Default: that of the site. */
  readonly host?: string;
}

/** One page of the site in a browser profile of its own, with everything that went wrong in it. */
export interface SitePage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors in the console (Content-Security-Policy violations included) and uncaught exceptions. */
  readonly consoleErrors: readonly string[];
  /** Requests without a response, as "URL: reason". */
  readonly failedRequests: readonly string[];
  /** All URLs that the browser requested, without fragments, which it does not send. */
  readonly requestedUrls: readonly string[];
  /** Runs axe-core on the current state of the page. Returns one line per violation. */
  violations(): Promise<string[]>;
  /** Writes NAME-SCHEME-WIDTH.png to the folder TEST_SCREENSHOTS, if it is set. */
  screenshot(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Opens a path of the site with the key in the link's fragment, as the link that `npm start` prints. */
export async function openPage(
  browser: Browser,
  site: SiteAddress,
  location: string,
  options: PageOptions = {},
): Promise<SitePage> {
  const { scheme = 'light', width = 1280, height = width < 600 ? 844 : 800 } = options;
  const { key = site.apiKey, host, touch = false } = options;
  const context = await browser.newContext({
    colorScheme: scheme,
    viewport: { width, height },
    hasTouch: touch,
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(WAIT_LIMIT_MS);
  const page = await context.newPage();
  const consoleErrors: string[] = [];
  const failedRequests: string[] = [];
  const requestedUrls: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') consoleErrors.push(message.text());
  });
  page.on('pageerror', (error) => consoleErrors.push(String(error)));
  page.on('requestfailed', (request) =>
    failedRequests.push(`${request.url()}: ${request.failure()?.errorText}`),
  );
  page.on('request', (request) => requestedUrls.push(request.url().split('#', 1)[0]!));
  const address = new URL(location, site.url);
  if (host !== undefined) address.hostname = host;
  if (key !== null) address.hash = `key=${key}`;
  await seedSampling(context);
  await page.goto(address.href);
  return {
    page,
    context,
    consoleErrors,
    failedRequests,
    requestedUrls,
    violations: () => violationsOf(page),
    screenshot: async (name) => {
      const folder = process.env.TEST_SCREENSHOTS;
      if (folder) await page.screenshot({ path: path.join(folder, `${name}-${scheme}-${width}.png`) });
    },
    close: () => context.close(),
  };
}

/** Gives each completion that has no seed one of its own, so that runs sample the same texts. */
async function seedSampling(context: BrowserContext): Promise<void> {
  // The playground draws seeds by itself.
  await context.addInitScript((first) => {
    let next = first;
    const draw = crypto.getRandomValues.bind(crypto);
    crypto.getRandomValues = (array) =>
      array instanceof Uint32Array && array.length === 1 ? array.fill(next++) : draw(array);
  }, TEST_SEED);
  let seed = TEST_SEED;
  await context.route('**/v1/completions', (route) => {
    const body: { seed?: number } = route.request().postDataJSON();
    return route.continue({ postData: { seed: seed++, ...body } });
  });
}

/**
 * Replaces the text of a field: a click at its start, keys that select and delete all, and the text, a line
 * at once. Tests of keys use the keyboard.
 */
export async function typeInto(field: Locator, text: string): Promise<void> {
  await field.click({ position: { x: 8, y: 8 } });
  const { keyboard } = field.page();
  // Chromium takes 30 s to replace the elements of 1,500 tokens by what is typed.
  for (const key of ['ControlOrMeta+a', 'Delete']) await keyboard.press(key);
  for (const [at, line] of text.split('\n').entries()) {
    if (at > 0) await keyboard.press('Enter');
    if (line !== '') await keyboard.insertText(line);
  }
}

/** Closes a page as a person does; resolves when it and its locks are gone, changes stored. */
export async function closeAndLeave(page: Page): Promise<void> {
  const [other] = page
    .context()
    .pages()
    .filter((one) => one !== page);
  const holders = () =>
    other!.evaluate(async () => {
      const { held = [] } = await navigator.locks.query();
      return new Set(held.map(({ clientId }) => clientId)).size;
    });
  const before = await holders();
  const gone = page.waitForEvent('close');
  await page.close({ runBeforeUnload: true });
  await gone;
  await expect.poll(holders).toBeLessThan(before);
}

/** Everything that the page stored, as JSON. */
export const storedText = (page: Page): Promise<string> =>
  page.evaluate(
    () =>
      new Promise<string>((resolve, reject) => {
        const opening = indexedDB.open('continuo');
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const database = opening.result;
          const all = database.transaction('values').objectStore('values').getAll();
          all.onsuccess = () => {
            database.close();
            resolve(
              JSON.stringify([all.result, { ...localStorage }, { ...sessionStorage }, document.cookie]),
            );
          };
        };
      }),
  );

async function violationsOf(page: Page): Promise<string[]> {
  // The protocol runs this outside the page's Content-Security-Policy.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(`${AXE}; undefined`);
  const { violations } = await page.evaluate<AxeResults>("axe.run({ resultTypes: ['violations'] })");
  return violations.map(({ id, help, nodes }) => {
    const places = nodes.map(({ target, failureSummary }) => `${target.join(' ')} (${failureSummary})`);
    return `${id}: ${help}: ${places.join('; ')}`;
  });
}
