import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { APPEARANCES } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

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

describe('every view of the playground', () => {
  test.for(APPEARANCES)(
    'is accessible, with targets for fingers and without layout shift: $scheme, $width pixels',
    async (appearance, { visit }) => {
      const site = await visit('/', appearance);
      const { page } = site;
      const narrow = appearance.width < 600;
      const faults: string[] = [];
      const check = async (name: string) => {
        await site.screenshot(`playground-${name}`);
        const found = [...(await site.violations()), ...(narrow ? await smallTargets(page) : [])];
        faults.push(...found.map((fault) => `${name}: ${fault}`));
      };
      await page.getByText('A fairy tale').waitFor();
      const shift = await layoutShift(page);
      expect(shift).toBeLessThan(0.01);
      await check('empty');

      await page.getByText('A fairy tale').click();
      await page.getByRole('button', { name: 'Complete' }).click();
      await page.getByRole('status').getByText('Finished').waitFor();
      await page.getByRole('textbox', { name: 'Text' }).locator('.token').nth(4).hover();
      await page.getByRole('region', { name: 'Alternatives' }).waitFor();
      await check('alternatives');
      await page.keyboard.press('Escape');

      if (narrow) await page.getByRole('button', { name: 'Parameters' }).click();
      await page.locator('.group summary:visible').first().waitFor();
      const closed = page.locator('.group:not([open]) summary:visible');
      while ((await closed.count()) > 0) await closed.first().click();
      await check('parameters');
      await page.getByRole('button', { name: 'Edit schema' }).locator('visible=true').click();
      await page.getByText('Valid').waitFor();
      await check('constraint');
      await page.keyboard.press('Escape');
      if (narrow) await page.keyboard.press('Escape');

      await page.getByRole('button', { name: 'More' }).click();
      await check('more');
      await page.getByRole('button', { name: 'Copy as code…' }).click();
      await check('copy');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: /^Key/ }).click();
      await check('key');
      expect(faults).toEqual([]);
      expect(site.consoleErrors).toEqual([]);
    },
  );
});

test('examples stand at the edge of the text, keep their indentation and leave no hole', async ({
  visit,
}) => {
  for (const width of [1280, 1024, 900]) {
    const { page } = await visit('/', { width });
    const cards = page.locator('.example');
    await cards.first().waitFor();
    const lefts = await cards.evaluateAll((all) => all.map((card) => card.getBoundingClientRect().left));
    expect([1, 3], `columns at ${width} pixels`).toContain(new Set(lefts).size);
    const code = await cards.nth(1).locator('code').innerText();
    expect(code).toContain('\n    """');
    const heading = await page.getByRole('heading', { name: 'Write the beginning' }).boundingBox();
    await cards.first().click();
    const textLeft = await page
      .locator('.cm-line')
      .first()
      .evaluate((line) => {
        const range = document.createRange();
        range.selectNodeContents(line);
        return range.getBoundingClientRect().left;
      });
    expect(Math.abs(textLeft - heading!.x), `edge at ${width} pixels`).toBeLessThan(2);
  }
});

test('key caps are one line high, however long the action is', async ({ visit }) => {
  const { page } = await visit('/', { width: 390 });
  await page.locator('.example').first().waitFor();
  await page.keyboard.press('?');
  await page.locator('kbd').first().waitFor();
  const heights = await page
    .locator('kbd')
    .evaluateAll((caps) => caps.map((cap) => cap.getBoundingClientRect().height));
  expect(Math.max(...heights)).toBeLessThan(24);
});
