import { siteTest as test } from '../../support/browser/site-test.ts';
import { sharedSystem } from '../../support/shared-system.ts';
import { walkAll } from './walks.ts';

// Its start is not a part of the walk's time.
sharedSystem();

test('every view works, is accessible, and loads without an error and from this host only', ({
  visit,
  system,
}) => walkAll(visit, { scheme: 'light', width: 1280 }, system));
