import { expect, test } from 'vitest';
import { docsRouteOf, toGuide, toOperation } from '../../../../worker/site/docs/routes.ts';

test.each([
  ['/docs', { kind: 'overview' }],
  ['/docs/', { kind: 'overview' }],
  ['/docs/admin', { kind: 'admin' }],
  [toGuide('decisions/0001-one-relay'), { kind: 'guide', name: 'decisions/0001-one-relay' }],
  [toOperation('api', 'createCompletion'), { kind: 'operation', api: 'api', id: 'createCompletion' }],
  [toOperation('admin', 'listPlans'), { kind: 'operation', api: 'admin', id: 'listPlans' }],
  ['/docs/guides', { kind: 'unknown' }],
  ['/docs/none/at/all', { kind: 'unknown' }],
])('reads %s', (pathname, route) => {
  expect(docsRouteOf(pathname)).toEqual(route);
});
