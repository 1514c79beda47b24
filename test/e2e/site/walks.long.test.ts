import { siteTest as test } from '../../support/browser/site-test.ts';
import { walkAll } from './walks.ts';

test('every view is accessible in dark colours on a telephone, with targets for fingers', ({
  visit,
  system,
}) => walkAll(visit, { scheme: 'dark', width: 390 }, system));
