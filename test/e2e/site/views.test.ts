import { describe, expect } from 'vitest';
import { APPEARANCES } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';

/** Views by name: the address of each, and what is visible once it is complete. */
const VIEWS = {
  start: ['/', 'h1'],
  docs: ['/docs', '.operations'],
  operation: ['/docs/api/createCompletion', 'button:text-is("Send")'],
  guide: ['/docs/guides/constraints', '.guide table'],
  admin: ['/docs/admin', '.operations'],
  'admin-operation': ['/docs/admin/createKey', 'button:text-is("Send")'],
} as const;

describe.each(Object.entries(VIEWS))('the view "%s"', (name, [location, complete]) => {
  test.for(APPEARANCES)(
    'loads without an error, from this host only, and is accessible: $scheme, $width pixels',
    async (appearance, { visit, system }) => {
      const site = await visit(location, appearance);
      await site.page.getByRole('heading', { level: 1 }).waitFor();
      await site.page.locator(complete).first().waitFor();
      await site.screenshot(name);
      expect(await site.violations()).toEqual([]);
      expect(site.consoleErrors).toEqual([]);
      expect(site.failedRequests).toEqual([]);
      expect(site.requestedUrls.length).toBeGreaterThan(0);
      expect([...new Set(site.requestedUrls.map((url) => new URL(url).origin))]).toEqual([system.url]);
    },
  );
});
