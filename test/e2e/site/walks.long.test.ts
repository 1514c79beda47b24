import { siteTest as test } from '../../support/browser/site-test.ts';
import { WALKS } from './walks.ts';

test.for(Object.entries(WALKS))(
  'the %s is accessible in dark colours on a telephone, with targets for fingers',
  async ([, walk], { visit, system }) => walk(visit, { scheme: 'dark', width: 390 }, system),
);
