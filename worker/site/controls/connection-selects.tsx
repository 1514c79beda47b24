import { DIALECT_NAMES } from 'virtual:request-fields';
import { Select } from './select.tsx';

interface ModelSelectProps {
  readonly label: string;
  /** Ids of the models that the key may use. */
  readonly offered: readonly string[];
  readonly model: string;
  readonly onChange: (model: string) => void;
}

/** The model to request; the present one stays a choice if it is not offered. */
export function ModelSelect({ label, offered, model, onChange }: ModelSelectProps) {
  const options = [...new Set([...offered, model])].map((id) => [id, id] as const);
  return <Select label={label} value={model} options={options} onChange={onChange} />;
}

const OWN = '';
const DIALECTS = [[OWN, 'own dialect'] as const, ...DIALECT_NAMES.map((name) => [name, name] as const)];

interface DialectSelectProps {
  readonly label: string;
  /** Null = the tenant's own. */
  readonly dialect: string | null;
  readonly onChange: (dialect: string | null) => void;
  readonly class?: string;
}

/** The dialect: defaults and details of another server. */
export const DialectSelect = ({ label, dialect, onChange, class: name = '' }: DialectSelectProps) => (
  <Select
    class={name}
    label={label}
    value={dialect ?? OWN}
    options={DIALECTS}
    onChange={(chosen) => onChange(chosen === OWN ? null : chosen)}
  />
);
