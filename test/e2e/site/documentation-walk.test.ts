import { siteTest as test } from '../../support/browser/site-test.ts';
import { DOCUMENTATION_WALKS } from './walks.ts';

test.for(Object.entries(DOCUMENTATION_WALKS))(
  'the view "%s" of the documentation works, is accessible, and loads without an error and from this host only',
  ([, walk], { visit, system }) => walk(visit, { scheme: 'light', width: 1280 }, system.url),
);
