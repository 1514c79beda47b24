import { dialectNames } from '../api/dialects.ts';
import { NumberField } from '../controls/number-field.tsx';
import { Select } from '../controls/select.tsx';
import type { CompareState } from './compare-state.ts';
import type { SideSettings } from './comparison.ts';

export const SIDE_NAMES = ['A', 'B'] as const;

const FIELDS = ['max_tokens', 'temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty', 'seed'];
const OWN = '';

interface SideFormProps {
  readonly state: CompareState;
  readonly index: 0 | 1;
}

/** Model, dialect and parameters of one side. */
export function SideForm({ state: { session, settings }, index }: SideFormProps) {
  const { sides } = settings.value;
  const { model, dialect, parameters } = sides[index];
  const set = (change: Partial<SideSettings>) => {
    const [left, right] = sides;
    const changed = { ...sides[index], ...change };
    settings.value = { ...settings.value, sides: index === 0 ? [changed, right] : [left, changed] };
  };
  const access = session.access.value;
  const known = access.state === 'accepted' ? access.models.map(({ id }) => id) : [];
  const models = [...new Set([...known, model])].map((id) => [id, id] as const);
  const dialects = [[OWN, 'own dialect'] as const, ...dialectNames.map((name) => [name, name] as const)];
  const name = SIDE_NAMES[index];
  return (
    <section class="side-form" aria-label={`Settings of ${name}`}>
      <div class="side-head">
        <span class={`side-mark ${name}`} aria-hidden="true">
          {name}
        </span>
        <Select
          label={`Model of ${name}`}
          value={model}
          options={models}
          onChange={(id) => set({ model: id })}
        />
        <Select
          label={`Dialect of ${name}`}
          value={dialect ?? OWN}
          options={dialects}
          onChange={(chosen) => set({ dialect: chosen === OWN ? null : chosen })}
        />
      </div>
      <div class="side-fields">
        {FIELDS.map((field) => (
          <NumberField
            key={field}
            name={field}
            value={parameters[field] as number | undefined}
            onChange={(value) => set({ parameters: { ...parameters, [field]: value } })}
          />
        ))}
      </div>
    </section>
  );
}
