import { siteTest as test } from '../../support/browser/site-test.ts';
import { sharedSystem } from '../../support/shared-system.ts';
import { WALKS } from './walks.ts';

// Its start is not a part of the first walk's time.
sharedSystem();

test('the playground and its dialogs work, are accessible, and load without an error and from this host only', ({
  visit,
  system,
}) => WALKS.playground(visit, { scheme: 'light', width: 1280 }, system));
