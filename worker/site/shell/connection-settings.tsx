import { dialectNames } from '../api/dialects.ts';
import { Select } from '../controls/select.tsx';
import { useSession } from '../store/session.ts';

/** The model to request. Shows the models that the key may use. */
export function ModelSelect() {
  const { access, model } = useSession();
  const known = access.value.state === 'accepted' ? access.value.models.map(({ id }) => id) : [];
  const options = [...new Set([...known, model.value])].map((id) => [id, id] as const);
  return <Select label="Model" value={model.value} options={options} onChange={(id) => (model.value = id)} />;
}

const OWN = '';

/** The dialect: defaults and details of another server. */
export function DialectSelect() {
  const { dialect } = useSession();
  const options = [[OWN, 'own dialect'] as const, ...dialectNames.map((name) => [name, name] as const)];
  return (
    <Select
      class="dialect"
      label="Dialect"
      value={dialect.value ?? OWN}
      options={options}
      onChange={(name) => (dialect.value = name === OWN ? null : name)}
    />
  );
}
