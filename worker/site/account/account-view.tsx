import type { OwnKey } from './api-objects.ts';
import { BatchesSection } from './batches/batches-section.tsx';
import { KeyView, type Section } from './key-view.tsx';
import { KeysSection } from './keys/keys-section.tsx';
import { OverviewSection } from './overview/overview-section.tsx';
import { RequestsSection } from './requests/requests-section.tsx';
import { UsageSection } from './usage/usage-section.tsx';

const anyKey = () => true;
const withScope =
  (scope: string) =>
  ({ scopes }: OwnKey) =>
    scopes.includes(scope);

const SECTIONS: readonly Section[] = [
  // It counts, so it is read often.
  { name: '', title: 'Overview', isFor: anyKey, readMs: 5_000, Content: OverviewSection },
  { name: 'usage', title: 'Usage', isFor: anyKey, Content: UsageSection },
  { name: 'requests', title: 'Requests', isFor: anyKey, Content: RequestsSection },
  { name: 'keys', title: 'Keys', isFor: withScope('keys'), Content: KeysSection },
  { name: 'batches', title: 'Batches', isFor: withScope('completions'), Content: BatchesSection },
];

/** What a key's account has used and may use, with its keys and batches. */
export const AccountView = () => (
  <KeyView
    view="account"
    title="Account"
    about="Limits, usage, keys and batches belong to an API key. This page has none."
    headingOf={({ tenant }) => tenant.name}
    sections={SECTIONS}
  />
);
