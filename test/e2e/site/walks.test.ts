import { siteTest as test } from '../../support/browser/site-test.ts';
import { WALKS } from './walks.ts';

test.for(Object.entries(WALKS))(
  'the %s works, is accessible, and loads without an error and from this host only',
  async ([, walk], { visit, system }) => walk(visit, { scheme: 'light', width: 1280 }, system.url),
);
