import { DialectSelect, ModelSelect } from '../controls/connection-selects.tsx';
import { offeredModels, useSession } from '../store/session.ts';

/** The model of all views. */
export function SharedModel() {
  const session = useSession();
  const { model } = session;
  const offered = offeredModels(session);
  const choose = (id: string) => (model.value = id);
  return <ModelSelect label="Model" offered={offered} model={model.value} onChange={choose} />;
}

/** The dialect of all views. */
export function SharedDialect() {
  const { dialect } = useSession();
  const choose = (name: string | null) => (dialect.value = name);
  return <DialectSelect class="dialect" label="Dialect" dialect={dialect.value} onChange={choose} />;
}
