import './account.css';
import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { useSession } from '../store/session.ts';
import { type Account, AccountContext, askJson, openAccount, useAccount } from './account.ts';
import { BatchesSection } from './batches/batches-section.tsx';
import { KeysSection } from './keys/keys-section.tsx';
import { MadeKeys } from './keys/made-keys.tsx';
import { OverviewSection } from './overview/overview-section.tsx';
import type { OwnKey } from './own-key.ts';
import { RequestsSection } from './requests/requests-section.tsx';
import { type Resource, useResource } from './resource.ts';
import { Loaded } from './states.tsx';
import { UsageSection } from './usage/usage-section.tsx';

interface Section {
  readonly name: string;
  readonly title: string;
  /** Scope that a key needs for it; null = any. */
  readonly scope: string | null;
  readonly Content: ComponentType<{ readonly own: Resource<OwnKey> }>;
}

/** What a key may not do has no section. */
const SECTIONS: readonly Section[] = [
  { name: '', title: 'Overview', scope: null, Content: OverviewSection },
  { name: 'usage', title: 'Usage', scope: null, Content: UsageSection },
  { name: 'requests', title: 'Requests', scope: null, Content: RequestsSection },
  { name: 'keys', title: 'Keys', scope: 'keys', Content: KeysSection },
  { name: 'batches', title: 'Batches', scope: 'completions', Content: BatchesSection },
];

/** The overview counts, so it is read often; elsewhere, a key that has ended is noticed within a minute. */
const READ_OVERVIEW_MS = 5_000;
const READ_MS = 60_000;

/** What a key's account has used and may use, with its keys and batches. */
export function AccountView() {
  const { key, askForKey } = useSession();
  if (key.value !== null) return <OpenedAccount key={key.value} apiKey={key.value} />;
  return (
    <div class="empty">
      <h1>Account</h1>
      <p class="quiet">Limits, usage, keys and batches belong to an API key. This page has none.</p>
      <Button class="primary" text="Enter a key" onClick={() => (askForKey.value = true)} />
    </div>
  );
}

function OpenedAccount({ apiKey }: { readonly apiKey: string }) {
  const account = useMemo(() => openAccount(apiKey, Date.now), [apiKey]);
  return (
    <AccountContext.Provider value={account}>
      {account.refusal.value === null ? <Sections account={account} /> : <Refused account={account} />}
    </AccountContext.Provider>
  );
}

/** Takes everything away that the key has shown: who sees the page now may not be who had the key. */
function Refused({ account: { refusal } }: { readonly account: Account }) {
  const { askForKey } = useSession();
  return (
    <div class="empty" role="alert">
      <h1>The server refuses this key</h1>
      <p>
        It was revoked or disabled, or has expired: {refusal.value?.message} Enter another key, or try this
        one again.
      </p>
      <div class="row">
        <Button class="primary" text="Enter a key" onClick={() => (askForKey.value = true)} />
        <Button icon="retry" text="Try again" onClick={() => (refusal.value = null)} />
      </div>
    </div>
  );
}

const sectionName = (): string => location.hash.split('/')[2] ?? '';

function Sections({ account }: { readonly account: Account }) {
  const name = useSignal(sectionName());
  useEffect(() => {
    const closed = new AbortController();
    const follow = () => (name.value = sectionName());
    addEventListener('hashchange', follow, { signal: closed.signal });
    // The address may have changed before the browser has painted.
    follow();
    return () => closed.abort();
  }, []);
  const own = useResource(
    async (signal) => {
      account.own.value = await askJson<OwnKey>(account, '/v1/key', { signal });
      return account.own.value;
    },
    '',
    name.value === '' ? READ_OVERVIEW_MS : READ_MS,
  );
  return (
    <div class="account">
      <Loaded of={own}>{(key) => <OwnSections own={own} value={key} name={name.value} />}</Loaded>
    </div>
  );
}

/** A request failed after its dialog was closed. */
function LateFailure() {
  const { lateFailure } = useAccount();
  const failure = lateFailure.value;
  if (failure === null) return null;
  return (
    <div class="notice" role="alert">
      <div>
        <strong>The change was not made</strong>
        <p>{failure.message}</p>
      </div>
      <Button text="Dismiss" onClick={() => (lateFailure.value = null)} />
    </div>
  );
}

interface OwnSectionsProps {
  readonly own: Resource<OwnKey>;
  readonly value: OwnKey;
  readonly name: string;
}

function OwnSections({ own, value: key, name }: OwnSectionsProps) {
  const allowed = SECTIONS.filter(({ scope }) => scope === null || key.scopes.includes(scope));
  const current = allowed.find((section) => section.name === name) ?? allowed[0]!;
  return (
    <>
      <header class="account-head">
        <h1>
          <bdi>{key.tenant.name}</bdi>
        </h1>
        <p class="quiet">
          Key <bdi>{key.name}</bdi> <code>{key.id}</code>
        </p>
      </header>
      <nav class="account-nav" aria-label="Account">
        {allowed.map((section) => (
          <a
            key={section.name}
            href={`#/account${section.name && `/${section.name}`}`}
            aria-current={section === current ? 'page' : undefined}
          >
            {section.title}
          </a>
        ))}
      </nav>
      <div class="account-section">
        <LateFailure />
        <MadeKeys />
        <current.Content key={current.name} own={own} />
      </div>
    </>
  );
}
