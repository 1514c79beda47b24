import type { SitePage } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';
import { WALKS } from './walks.ts';

test('every view is accessible in dark colours on a telephone, with targets for fingers', async ({
  visit,
  system,
}) => {
  let site: SitePage | null = null;
  for (const walk of Object.values(WALKS)) {
    await walk(
      async (location, options) => {
        if (site === null) return (site = await visit(location, options));
        // Otherwise the same document would go on.
        await site.page.goto('about:blank');
        await site.page.goto(`${system.url}${location}#key=${system.apiKey}`);
        return site;
      },
      { scheme: 'dark', width: 390 },
      system,
    );
  }
});
