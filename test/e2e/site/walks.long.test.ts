import { siteTest as test } from '../../support/browser/site-test.ts';
import { sharedSystem } from '../../support/shared-system.ts';
import { WALKS } from './walks.ts';

// Its start is not a part of the first walk's time.
sharedSystem();

test.for(Object.entries(WALKS))(
  'the %s is accessible in dark colours on a telephone, with targets for fingers',
  async ([, walk], { visit, system }) => walk(visit, { scheme: 'dark', width: 390 }, system),
);
