import { siteTest as test } from '../../support/browser/site-test.ts';
import { sharedSystem } from '../../support/shared-system.ts';
import { WALKS } from './walks.ts';

// Its start is not a part of the first walk's time.
sharedSystem();

test.for(Object.entries(WALKS))(
  'the %s works, is accessible, and loads without an error and from this host only',
  async ([, walk], { visit, system }) => walk(visit, { scheme: 'light', width: 1280 }, system),
);
