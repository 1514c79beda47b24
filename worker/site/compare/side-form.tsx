import { DialectSelect, ModelSelect } from '../controls/connection-selects.tsx';
import { NumberField } from '../controls/number-field.tsx';
import { offeredModels } from '../store/session.ts';
import type { CompareState, Sides } from './compare-state.ts';
import type { SideSettings } from './comparison.ts';

export const SIDE_NAMES = ['A', 'B'] as const;

const FIELDS = ['max_tokens', 'temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty', 'seed'];

interface SideFormProps {
  readonly state: CompareState;
  readonly index: 0 | 1;
}

/** Model, dialect and parameters of one side. */
export function SideForm({ state: { session, settings }, index }: SideFormProps) {
  const { sides, prompts = null } = settings.value;
  const { model, dialect, parameters } = sides[index];
  const set = (change: Partial<SideSettings>) => {
    const [left, right] = sides;
    const changed = { ...sides[index], ...change };
    settings.value = { ...settings.value, sides: index === 0 ? [changed, right] : [left, changed] };
  };
  const name = SIDE_NAMES[index];
  return (
    <section class="side-form framed" aria-label={`Settings of ${name}`}>
      <div class="side-head">
        <span class={`side-mark ${name}`} aria-hidden="true">
          {name}
        </span>
        <ModelSelect
          label={`Model of ${name}`}
          offered={offeredModels(session)}
          model={model}
          onChange={(id) => set({ model: id })}
        />
        <DialectSelect
          label={`Dialect of ${name}`}
          dialect={dialect}
          onChange={(chosen) => set({ dialect: chosen })}
        />
      </div>
      {prompts && (
        <div class="field side-prompt">
          <textarea
            rows={3}
            aria-label={`Prompt of ${name}`}
            placeholder={`The beginning of a text, for ${name}`}
            value={prompts[index]}
            onInput={({ currentTarget: { value } }) => {
              const changed: Sides<string> = index === 0 ? [value, prompts[1]] : [prompts[0], value];
              settings.value = { ...settings.value, prompts: changed };
            }}
          />
        </div>
      )}
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
