import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type Connection, type LocalServer, listModels, type Model, requestJson } from '../api/client.ts';
import { failureFrom, type RequestFailure } from '../api/request-failure.ts';
import type { TokenizedText } from '../api/whole-choices.ts';
import { shareKey, takeLeftKey } from './key-handover.ts';
import { keyOfLink, takeLink } from './page-link.ts';
import { storedSignal } from './stored-signal.ts';

/** Whether the server accepts the key, and which models it offers. */
export type Access =
  | { readonly state: 'no-key' | 'checking' }
  | { readonly state: 'accepted'; readonly models: readonly Model[] }
  | { readonly state: 'refused' | 'unknown'; readonly failure: RequestFailure };

const modelOf = (access: Access, id: string): Model | undefined =>
  access.state === 'accepted' ? access.models.find((model) => model.id === id) : undefined;

/** Returns the tokens that a model's context holds; null if they are not known. */
export const contextOf = (access: Access, id: string): number | null =>
  modelOf(access, id)?.max_model_len ?? null;

/** Returns whether a model's server can heal the end of a prompt, as far as it is known. */
export const canHeal = (access: Access, id: string): boolean => modelOf(access, id)?.token_healing === true;

/** Returns the ids of the models that the key may use, as far as they are known, and of this browser's. */
export const offeredModels = ({ access, local }: Pick<Session, 'access' | 'local'>): readonly string[] => [
  ...(access.value.state === 'accepted' ? access.value.models.map(({ id }) => id) : []),
  ...(local.value === null ? [] : [local.value.id]),
];

/** What all views share: the key, the model, the dialect and the display of tokens. */
export interface Session {
  /** In this tab; null = none. */
  readonly key: ReadonlySignal<string | null>;
  /** On this device, for later visits; null = none. That of a tab with a key from a link is another one. */
  readonly keptKey: ReadonlySignal<string | null>;
  /** Changes the key of this tab. @param keeps whether it is the one that this device keeps */
  readonly changeKey: (next: string | null, keeps: boolean) => void;
  readonly model: Signal<string>;
  /** The model that runs in this browser; null = none. */
  readonly local: Signal<LocalServer | null>;
  /** Null = the tenant's own dialect. */
  readonly dialect: Signal<string | null>;
  readonly connection: ReadonlySignal<Connection>;
  readonly access: ReadonlySignal<Access>;
  /** Role of an admin key; null = it is none, or the server has not said so. */
  readonly role: ReadonlySignal<string | null>;
  readonly display: Signal<TokenDisplay>;
  /** Whether the dialog for the key is open. */
  readonly askForKey: Signal<boolean>;
  /** Text on its way to another view; see `takeCarried`. */
  readonly carried: Signal<CarriedText | null>;
}

export type ViewWithText = '' | 'tree' | 'compare';

export interface CarriedText {
  readonly to: ViewWithText;
  readonly parts: readonly TokenizedText[];
}

/** Returns the parts of the text that was carried to a view, once; null = none was. */
export function takeCarried({ carried }: Session, view: ViewWithText): CarriedText['parts'] | null {
  const waiting = carried.peek();
  if (waiting?.to !== view) return null;
  carried.value = null;
  return waiting.parts;
}

/** How token texts show their probabilities. */
export interface TokenDisplay {
  readonly tint: 'background' | 'underline' | 'none';
  /** Shows spaces, tabs and line breaks as signs. */
  readonly whiteSpace: boolean;
}

/** The key of this tab, and the one that is kept on this device, which only the visitor changes. */
async function openKeys() {
  const key = signal<string | null>(null);
  const askForKey = signal(false);
  /** Returns whether the address had a link that brings no key. */
  const followLink = async (): Promise<boolean> => {
    const link = takeLink();
    const brought = link && (await keyOfLink(link));
    if (brought !== null) key.value = brought;
    return link !== null && brought === null;
  };
  // Before the first wait: a link may bring the key while the page loads.
  addEventListener('hashchange', async () => {
    if (await followLink()) askForKey.value = key.peek() === null;
  });
  const left = takeLeftKey();
  const [kept, hasFailed] = await Promise.all([storedSignal<string | null>('api-key', null), followLink()]);
  key.value ??= left ?? kept.peek();
  askForKey.value = hasFailed && key.peek() === null;
  shareKey(key);
  const changeKey = (next: string | null, keeps: boolean) => {
    const isKept = key.peek() !== null && key.peek() === kept.peek();
    key.value = next;
    if (keeps || isKept) kept.value = keeps ? next : null;
  };
  return { key, keptKey: kept, changeKey, askForKey };
}

/** Reads the stored settings. Takes the key out of the address first. */
export async function openSession(): Promise<Session> {
  const [{ key, ...keys }, model, dialect, display] = await Promise.all([
    openKeys(),
    storedSignal('model', 'default'),
    storedSignal<string | null>('dialect', null),
    storedSignal<TokenDisplay>('token-display', { tint: 'background', whiteSpace: false }),
  ]);
  const local = signal<LocalServer | null>(null);
  const connection = computed(() => ({ key: key.value, dialect: dialect.value, local: local.value }));
  const access = signal<Access>({ state: 'no-key' });
  const role = signal<string | null>(null);
  effect(() => {
    role.value = null;
    if (key.value === null) {
      access.value = { state: 'no-key' };
      return;
    }
    const replaced = new AbortController();
    access.value = { state: 'checking' };
    const options = { signal: replaced.signal };
    const asked = { key: key.value, dialect: null };
    const ownKey = requestJson<{ role?: string | null }>(asked, '/v1/key', options).catch(() => null);
    void ownKey.then((shown) => {
      if (!replaced.signal.aborted) role.value = shown?.role ?? null;
    });
    void readAccess(asked, ownKey, replaced.signal).then((result) => {
      if (!replaced.signal.aborted) access.value = result;
    });
    return () => replaced.abort();
  });
  return {
    key,
    ...keys,
    model,
    local,
    dialect,
    connection,
    access,
    role,
    display,
    carried: signal(null),
  };
}

/** @param own what the server says of the key; null = nothing */
async function readAccess(
  connection: Connection,
  ownKey: Promise<object | null>,
  signal: AbortSignal,
): Promise<Access> {
  try {
    return { state: 'accepted', models: await listModels(connection, signal) };
  } catch (thrown) {
    const failure = failureFrom(thrown);
    // A key that only manages keys may not list models.
    if (failure.status === 403 && (await ownKey) !== null) return { state: 'accepted', models: [] };
    return { state: failure.kind === 'key-refused' ? 'refused' : 'unknown', failure };
  }
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('There is no SessionContext.Provider.');
  return session;
}
