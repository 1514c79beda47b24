import './account.css';
import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useMemo } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { useListener } from '../controls/use-listener.ts';
import { useSession } from '../store/session.ts';
import { type Account, AccountContext, askJson, openAccount, useAccount } from './account.ts';
import type { OwnKey } from './api-objects.ts';
import { MadeKeys } from './keys/made-keys.tsx';
import { type Resource, useResource } from './resource.ts';
import { Loaded } from './states.tsx';

export interface Section {
  /** In the address; '' = the first one. */
  readonly name: string;
  readonly title: string;
  /** Whether the key in use may do what it is for. What a key may not do has no section. */
  readonly isFor: (ownKey: OwnKey) => boolean;
  /** Time between two readings of the key, by which one that has ended is noticed. Default: a minute. */
  readonly readMs?: number;
  readonly Content: ComponentType<{ readonly ownKey: Resource<OwnKey> }>;
}

interface KeyViewProps {
  /** Name of the view in the address. */
  readonly view: string;
  readonly title: string;
  /** What the view is, for a page without a key. */
  readonly about: string;
  /** The heading of the view. */
  readonly headingOf: (ownKey: OwnKey) => string;
  readonly sections: readonly Section[];
}

const READ_MS = 60_000;

/** A view that belongs to the key of the page: its sections, as far as the key may use them. */
export function KeyView(props: KeyViewProps) {
  const { key, askForKey } = useSession();
  if (key.value !== null) return <OpenedView key={key.value} apiKey={key.value} {...props} />;
  return (
    <div class="empty">
      <h1>{props.title}</h1>
      <p class="quiet">{props.about}</p>
      <Button class="primary" text="Enter a key" onClick={() => (askForKey.value = true)} />
    </div>
  );
}

function OpenedView({ apiKey, ...props }: KeyViewProps & { readonly apiKey: string }) {
  const account = useMemo(() => openAccount(apiKey, Date.now), [apiKey]);
  return (
    <AccountContext.Provider value={account}>
      {account.refusal.value === null ? (
        <Sections account={account} {...props} />
      ) : (
        <Refused account={account} />
      )}
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

function Sections({ account, ...props }: KeyViewProps & { readonly account: Account }) {
  const { sections } = props;
  const name = useSignal(sectionName());
  useListener('hashchange', () => (name.value = sectionName()));
  const ownKey = useResource(
    async (signal) => {
      account.ownKey.value = await askJson<OwnKey>(account, '/v1/key', { signal });
      return account.ownKey.value;
    },
    '',
    sections.find((section) => section.name === name.value)?.readMs ?? READ_MS,
  );
  return (
    <div class="account">
      <Loaded of={ownKey}>
        {(key) => <OwnSections {...props} ownKey={ownKey} value={key} name={name.value} />}
      </Loaded>
    </div>
  );
}

/** A request failed after its dialog was closed. */
function LateFailure() {
  const { lateFailure } = useAccount();
  const failure = lateFailure.value;
  if (failure === null) return null;
  return (
    <div class="notice row spread" role="alert">
      <div>
        <strong>The change was not made</strong>
        <p>{failure.message}</p>
      </div>
      <Button text="Dismiss" onClick={() => (lateFailure.value = null)} />
    </div>
  );
}

interface OwnSectionsProps extends KeyViewProps {
  readonly ownKey: Resource<OwnKey>;
  readonly value: OwnKey;
  readonly name: string;
}

function OwnSections({ view, title, headingOf, sections, ownKey, value: key, name }: OwnSectionsProps) {
  const allowed = sections.filter(({ isFor }) => isFor(key));
  const current = allowed.find((section) => section.name === name) ?? allowed[0];
  return (
    <>
      <header class="account-head">
        <h1 class="clipped">
          <bdi>{headingOf(key)}</bdi>
        </h1>
        <p class="quiet clipped">
          Key <bdi>{key.name}</bdi> <code>{key.id}</code>
        </p>
      </header>
      <nav class="account-nav" aria-label={title}>
        {allowed.map((section) => (
          <a
            key={section.name}
            href={`#/${view}${section.name && `/${section.name}`}`}
            aria-current={section === current ? 'page' : undefined}
          >
            {section.title}
          </a>
        ))}
      </nav>
      <div class="account-section stack">
        <LateFailure />
        <MadeKeys />
        {current === undefined ? (
          <p class="quiet">This key may do nothing of this view. Enter another one.</p>
        ) : (
          <current.Content key={current.name} ownKey={ownKey} />
        )}
      </div>
    </>
  );
}
