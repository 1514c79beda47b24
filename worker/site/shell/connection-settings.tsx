import { DialectSelect, ModelSelect } from '../controls/connection-selects.tsx';
import { offeredModels, useSession } from '../store/session.ts';

/** The model of all views. */
export function SharedModel() {
  const { access, model } = useSession();
  return (
    <ModelSelect
      label="Model"
      offered={offeredModels(access.value)}
      model={model.value}
      onChange={(id) => (model.value = id)}
    />
  );
}

/** The dialect of all views. */
export function SharedDialect() {
  const { dialect } = useSession();
  return (
    <DialectSelect
      class="dialect"
      label="Dialect"
      dialect={dialect.value}
      onChange={(name) => (dialect.value = name)}
    />
  );
}
