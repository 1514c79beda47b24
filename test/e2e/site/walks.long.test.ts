import { siteTest as test } from '../../support/browser/site-test.ts';
import { DOCUMENTATION_WALKS, WALKS } from './walks.ts';

test.for(Object.entries({ ...WALKS, ...DOCUMENTATION_WALKS }))(
  'the %s is accessible in dark colours on a telephone, with targets for fingers',
  async ([, walk], { visit, system }) => walk(visit, { scheme: 'dark', width: 390 }, system.url),
);
