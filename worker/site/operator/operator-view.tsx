import type { OwnKey } from '../account/api-objects.ts';
import { KeyView, type Section } from '../account/key-view.tsx';
import { AuditSection } from './audit/audit-section.tsx';
import { NowSection } from './now/now-section.tsx';
import { PlansSection } from './plans/plans-section.tsx';
import { PricesSection } from './prices/prices-section.tsx';
import { rightsOf } from './rights.ts';
import { TenantsSection } from './tenants/tenants-section.tsx';
import { UpstreamsSection } from './upstreams/upstreams-section.tsx';

const isAdmin = ({ role }: OwnKey) => role !== null;
/** Keys of one tenant see nothing of the others. */
const seesAll = ({ role }: OwnKey) => role !== null && rightsOf(role).tenant === null;

const SECTIONS: readonly Section[] = [
  { name: '', title: 'Now', isFor: seesAll, Content: NowSection },
  { name: 'tenants', title: 'Tenants', isFor: isAdmin, Content: TenantsSection },
  { name: 'plans', title: 'Plans', isFor: seesAll, Content: PlansSection },
  { name: 'prices', title: 'Prices', isFor: seesAll, Content: PricesSection },
  { name: 'upstreams', title: 'Upstreams', isFor: seesAll, Content: UpstreamsSection },
  { name: 'audit', title: 'Audit log', isFor: isAdmin, Content: AuditSection },
];

/** The whole endpoint, for the keys of its operator. */
export const OperatorView = () => (
  <KeyView
    view="operator"
    title="Operator"
    about="Tenants, plans, prices and upstreams are managed with an admin key. This page has no key."
    headingOf={({ role }) => (role === null ? 'Operator' : `Operator: ${role}`)}
    sections={SECTIONS}
  />
);
