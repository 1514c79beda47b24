import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { type ComponentChild, h } from 'preact';
import { vi } from 'vitest';
import { AccountView } from '../../../../worker/site/account/account-view.tsx';
import type { OwnKey } from '../../../../worker/site/account/api-objects.ts';
import { type Session, SessionContext } from '../../../../worker/site/store/session.ts';
import { type Rendered, rendered } from '../support/rendered.ts';

const NO_LIMITS = {
  requests_per_minute: null,
  tokens_per_day: null,
  tokens_per_month: null,
  micros_per_day: null,
  micros_per_month: null,
  soft_micros_per_day: null,
};
const NOTHING = { tokens_per_day: 0, tokens_per_month: 0, micros_per_day: 0, micros_per_month: 0 };
const NO_LEFT = {
  tokens_per_day: null,
  tokens_per_month: null,
  micros_per_day: null,
  micros_per_month: null,
};

/** A key without limits. */
export const OWN: OwnKey = {
  id: 'own-id',
  name: 'Writer',
  scopes: ['completions', 'models'],
  role: null,
  models: null,
  expires_at: null,
  allowed_addresses: null,
  last_used_at: null,
  limits: NO_LIMITS,
  used: NOTHING,
  left: NO_LEFT,
  alerts: [],
  tenant: {
    id: 'ink',
    name: 'Ink and Paper',
    limits: NO_LIMITS,
    used: NOTHING,
    left: NO_LEFT,
    wait_for_tokens: false,
    balance_micros: null,
  },
};

export interface SentRequest {
  readonly method: string;
  /** Path with its query. */
  readonly path: string;
  readonly body: unknown;
  readonly key: string | null;
}

/** The server's time in all answers: half a minute before noon, so that slow tests see no other hour. */
export const SERVER_NOW = Date.UTC(2026, 10, 29, 11, 59, 30);

export const refusal = (status: number, code: string, type = 'invalid_request_error'): Response =>
  Response.json({ error: { code, type, message: `The reason: ${code}.`, param: null } }, { status });

/** Answers the page's requests. Returns those so far. */
export function serve(reply: (request: SentRequest) => unknown): SentRequest[] {
  const sent: SentRequest[] = [];
  vi.stubGlobal('navigator', { onLine: true });
  vi.stubGlobal('fetch', async (path: string, { method = 'GET', body, headers }: RequestInit) => {
    const key = new Headers(headers).get('authorization');
    const request = { method, path, key, body: body === undefined ? null : JSON.parse(String(body)) };
    sent.push(request);
    const answer = await reply(request);
    const response = answer instanceof Response ? answer : Response.json(answer);
    response.headers.set('date', new Date(SERVER_NOW).toUTCString());
    return response;
  });
  return sent;
}

/** Opens the view at an address. The server answers `/v1/key` with `own` unless `reply` does. */
export function openView(
  hash: string,
  own: OwnKey,
  reply: (request: SentRequest) => unknown = () => undefined,
  { key = 'sk-test', View = AccountView }: { key?: string | null; View?: () => ComponentChild } = {},
): { readonly page: Rendered; readonly sent: SentRequest[]; readonly session: Session } {
  vi.stubGlobal('location', { hash, host: 'test.local' });
  const sent = serve((request) => reply(request) ?? (request.path === '/v1/key' ? own : { data: [] }));
  const session = { key: signal(key), askForKey: signal(false) } as unknown as Session;
  const view: ComponentChild = h(SessionContext.Provider, { value: session }, h(View, {}));
  return { page: rendered(view), sent, session };
}
