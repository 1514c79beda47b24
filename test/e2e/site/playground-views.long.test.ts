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
