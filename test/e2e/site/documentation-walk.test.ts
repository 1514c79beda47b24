import { siteTest as test } from '../../support/browser/site-test.ts';
import { WALKS } from './walks.ts';

test.for(['documentation', 'admin documentation'] as const)(
  'the views of the %s work, are accessible, and load without an error and from this host only',
  (name, { visit, system }) => WALKS[name](visit, { scheme: 'light', width: 1280 }, system),
);
