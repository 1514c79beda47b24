import { expect } from 'vitest';
import { OperatorView } from '../../../../worker/site/operator/operator-view.tsx';
import { waitFor } from '../../../support/wait-for.ts';
import { OWN, openView, SERVER_NOW, type SentRequest } from '../account/fake-account.ts';

export const NOW = SERVER_NOW / 1000;

const tenantOf = (at: number) => ({
  id: `t${at}`,
  name: at === 1 ? 'دار الحبر والورق' : `tenant ${at}`,
  plan: at === 0 ? 'basic' : null,
  limits: at === 2 ? { tokens_per_day: 5_000, requests_per_minute: null } : {},
  weight: null,
  dialect: 'openai',
  open_objects: false,
  any_key_order: false,
  wait_for_tokens: false,
  aliases: { old: 'default', gone: 'default' },
  suspended: at === 3,
  created_at: NOW - 100 - at,
});
const TENANTS = Array.from({ length: 3_000 }, (_, at) => tenantOf(at));
const PLANS = [
  {
    id: 'basic',
    name: 'Basic',
    limits: { tokens_per_day: 100, micros_per_day: null },
    weight: 2,
    created_at: NOW,
  },
];

/** Answers what the admin API answers, in pages. */
const listed = ({ path }: SentRequest): unknown => {
  const url = new URL(path, 'http://test.local');
  const [after, limit] = [url.searchParams.get('after'), Number(url.searchParams.get('limit'))];
  const paged = (all: readonly { readonly id: string }[]) => {
    const start = all.findIndex(({ id }) => id === after) + 1;
    return { data: all.slice(start, start + limit), has_more: start + limit < all.length };
  };
  if (url.pathname === '/admin/v1/tenants') return paged(TENANTS);
  if (url.pathname === '/admin/v1/plans') return paged(PLANS);
  if (url.pathname === '/admin/v1/tenants/t2') return TENANTS[2];
  return undefined;
};

export const operatorWith = (role: string | null) => ({ ...OWN, scopes: ['admin'], role });

/** Opens a section for a key with a role. `reply` answers before the lists do. */
export async function openOperator(
  section: string,
  role: string | null,
  shown: string,
  reply: (request: SentRequest) => unknown = () => undefined,
) {
  const answer = (request: SentRequest) =>
    reply(request) ?? (request.method === 'GET' ? listed(request) : undefined);
  const view = openView(`#/operator/${section}`, operatorWith(role), answer, { View: OperatorView });
  await waitFor(() => expect(view.page.text()).toContain(shown));
  return view;
}

export const changes = (sent: readonly SentRequest[]) =>
  sent.filter(({ method }) => method !== 'GET').map(({ method, path, body }) => ({ method, path, body }));
