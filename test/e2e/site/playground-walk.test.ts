import { siteTest as test } from '../../support/browser/site-test.ts';
import { WALKS } from './walks.ts';

test('the playground and its dialogs work, are accessible, and load without an error and from this host only', ({
  visit,
  system,
}) => WALKS.playground(visit, { scheme: 'light', width: 1280 }, system));
