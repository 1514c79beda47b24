import { siteTest as test } from '../../support/browser/site-test.ts';
import { WALKS } from './walks.ts';

test('the comparison works, is accessible, and loads without an error and from this host only', ({
  visit,
  system,
}) => WALKS.comparison(visit, { scheme: 'light', width: 1280 }, system));
