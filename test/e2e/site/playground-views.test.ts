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
