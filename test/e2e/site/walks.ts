import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import {
  type PageOptions,
  type SiteAddress,
  type SitePage,
  typeInto,
} from '../../support/browser/site-page.ts';
import { runs } from '../../support/random.ts';

/** A walk through one view of the page, and what is accessible, whole and free of errors on the way. */

type Visit = (location: string, options?: PageOptions) => Promise<SitePage>;
type Appearance = Required<Pick<PageOptions, 'scheme' | 'width'>>;

const PROMPT = 'Once upon a time there was a king who had three daughters.';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** The views Tree and Compare enable Stop while they generate. */
const untilDone = (page: Page) => button(page, 'Stop').and(page.locator(':disabled')).waitFor();

const link = (page: Page, name: string) => page.getByRole('link', { name }).click();

/** Names and sizes of all visible controls that a finger would miss. */
const smallTargets = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const controls = [
      ...document.querySelectorAll<HTMLElement>('button, select, summary, label, nav a, input'),
    ];
    return (
      controls
        .filter((element) => element.checkVisibility({ opacityProperty: true }))
        // A label is the target of the control in it.
        .filter((element) => !element.matches('label input, label:not(:has(input))'))
        .map((element) => ({ element, box: element.getBoundingClientRect() }))
        .filter(({ box }) => box.width > 0 && (box.height < 44 || box.width < 44))
        .map(({ element, box }) => `${element.outerHTML.slice(0, 80)}: ${box.width} × ${box.height}`)
    );
  });

/** Sum of all layout shifts since the page was opened, without those after an input. */
const layoutShift = (page: Page): Promise<number> =>
  page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const sum = (entries: PerformanceEntryList) =>
          entries.reduce((total, entry) => total + (Reflect.get(entry, 'value') as number), 0);
        const observer = new PerformanceObserver((list) => resolve(sum(list.getEntries())));
        observer.observe({ type: 'layout-shift', buffered: true });
        setTimeout(() => resolve(sum(observer.takeRecords())), 200);
      }),
  );

/** States whose accessibility `npm test` checks: one of each view. `npm run test:all` checks all. */
const CHECKED_ALWAYS = ['playground-alternatives', 'tree', 'compare', 'docs', 'admin'];
const CHECKS_ALL = runs(10) === 10;

/** Expects the current state of a view to be accessible, and takes a picture of it. */
async function check(site: SitePage, name: string): Promise<void> {
  await site.screenshot(name);
  if (!CHECKS_ALL && !CHECKED_ALWAYS.includes(name)) return;
  const violations = await site.violations();
  expect(violations, name).toEqual([]);
}

function expectNoFault(
  { consoleErrors, failedRequests, requestedUrls }: SitePage,
  { url }: SiteAddress,
): void {
  expect(consoleErrors).toEqual([]);
  // The page ends requests that it no longer needs.
  expect(failedRequests.filter((request) => !request.endsWith('net::ERR_ABORTED'))).toEqual([]);
  expect([...new Set(requestedUrls.map((one) => new URL(one).origin))]).toEqual([url]);
}

const isNarrow = ({ width }: Appearance): boolean => width < 600;

async function checkControls(site: SitePage, appearance: Appearance, name: string): Promise<void> {
  await check(site, `playground-${name}`);
  if (!isNarrow(appearance)) return;
  const small = await smallTargets(site.page);
  expect(small, name).toEqual([]);
}

/** Shows the parameters, which are closed on a telephone. */
async function openParameters(page: Page, appearance: Appearance): Promise<void> {
  if (isNarrow(appearance)) await page.getByRole('button', { name: 'Parameters' }).click();
  await page.locator('.group summary:visible').first().waitFor();
  const closed = page.locator('.group:not([open]) summary:visible');
  while ((await closed.count()) > 0) await closed.first().click();
}

async function walkPlayground(visit: Visit, appearance: Appearance, address: SiteAddress): Promise<void> {
  const site = await visit('/', appearance);
  const { page } = site;
  await page.getByText('A fairy tale').waitFor();
  const shift = await layoutShift(page);
  expect(shift).toBeLessThan(0.01);
  await checkControls(site, appearance, 'empty');

  await page.getByText('A fairy tale').click();
  await button(page, 'Complete').click();
  await page.getByRole('status').getByText('Finished').waitFor();
  await page.getByRole('textbox', { name: 'Text' }).locator('.token').nth(4).hover();
  await page.getByRole('region', { name: 'Alternatives' }).waitFor();
  await checkControls(site, appearance, 'alternatives');
  await page.keyboard.press('Escape');

  await openParameters(page, appearance);
  await checkControls(site, appearance, 'parameters');
  await walkDialogs(site, appearance);
  expectNoFault(site, address);
}

/** @param site the playground with open parameters */
async function walkDialogs(site: SitePage, appearance: Appearance): Promise<void> {
  const { page } = site;
  await page.getByRole('button', { name: 'Edit schema' }).locator('visible=true').click();
  await page.getByText('Valid').waitFor();
  await checkControls(site, appearance, 'constraint');
  await page.keyboard.press('Escape');
  if (isNarrow(appearance)) await page.keyboard.press('Escape');

  await button(page, 'More').click();
  await checkControls(site, appearance, 'more');
  await page.getByRole('button', { name: 'Copy as code…' }).click();
  await page.getByRole('dialog').waitFor();
  await checkControls(site, appearance, 'copy');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Key/ }).click();
  await checkControls(site, appearance, 'key');
}

async function walkTree(visit: Visit, appearance: Appearance, address: SiteAddress): Promise<void> {
  const site = await visit('/', appearance);
  const { page } = site;
  await link(page, 'Tree');
  await page.getByRole('heading', { name: 'Tree', exact: true }).waitFor();
  await check(site, 'tree-start');
  await page.getByRole('button', { name: /Once upon a time/ }).click();
  await page.getByRole('treeitem').nth(4).waitFor();
  await untilDone(page);
  await page.keyboard.press('2');
  await page.getByRole('button', { name: /^Branch( at token)?$/ }).click();
  await untilDone(page);
  await check(site, 'tree');
  await page.keyboard.press('3');
  for (const key of [']', ']']) await page.keyboard.press(key);
  await check(site, 'tree-token');
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await check(site, 'tree-keys');
  expectNoFault(site, address);
}

async function walkCompare(visit: Visit, appearance: Appearance, address: SiteAddress): Promise<void> {
  const site = await visit('/', appearance);
  const { page } = site;
  await link(page, 'Compare');
  await page.getByText('Or start with an example').waitFor();
  await check(site, 'compare-start');
  await typeInto(page.getByRole('textbox', { name: 'Prompt' }), PROMPT);
  await typeInto(page.getByRole('spinbutton', { name: 'n', exact: true }), '3');
  const side = page.getByRole('region', { name: 'Settings of A' });
  await typeInto(side.getByRole('spinbutton', { name: 'max_tokens', exact: true }), '16');
  await button(page, 'Compare').click();
  await page.locator('.plot').nth(1).waitFor();
  await untilDone(page);
  await check(site, 'compare');
  await page.locator('.distribution').last().scrollIntoViewIfNeeded();
  await site.screenshot('compare-plots');
  expectNoFault(site, address);
}

/** Address of each view of the documentation, and what is visible once it is complete. */
const DOCUMENTATION = {
  docs: ['/docs', '.operations'],
  operation: ['/docs/api/createCompletion', 'button:text-is("Send")'],
  guide: ['/docs/guides/constraints', '.guide table'],
  admin: ['/docs/admin', '.operations'],
  'admin-operation': ['/docs/admin/createKey', 'button:text-is("Send")'],
} as const;

async function walkDocumentation(visit: Visit, appearance: Appearance, address: SiteAddress): Promise<void> {
  const [first] = DOCUMENTATION.docs;
  const site = await visit(first, appearance);
  const { page } = site;
  for (const [name, [location, complete]] of Object.entries(DOCUMENTATION)) {
    // A page that is loaded again has no key.
    if (location !== first) await page.goto(`${address.url}${location}#key=${address.apiKey}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator(complete).first().waitFor();
    await check(site, name);
  }
  expectNoFault(site, address);
}

/** Walks through all views in one page. */
export async function walkAll(visit: Visit, appearance: Appearance, address: SiteAddress): Promise<void> {
  let site: SitePage | null = null;
  const visitAgain: Visit = async (location, options) => {
    if (site === null) return (site = await visit(location, options));
    // Otherwise the same document would go on.
    await site.page.goto('about:blank');
    await site.page.goto(`${address.url}${location}#key=${address.apiKey}`);
    return site;
  };
  for (const walk of [walkPlayground, walkTree, walkCompare, walkDocumentation])
    await walk(visitAgain, appearance, address);
}
