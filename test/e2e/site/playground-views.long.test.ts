import { expect } from 'vitest';
import { siteTest as test } from '../../support/browser/site-test.ts';

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
