import { siteTest as test } from '../../support/browser/site-test.ts';
import { WALKS } from './walks.ts';

test('the dialogs of the playground work, are accessible, and load without an error and from this host only', ({
  visit,
  system,
}) => WALKS.dialogs(visit, { scheme: 'light', width: 1280 }, system.url));
