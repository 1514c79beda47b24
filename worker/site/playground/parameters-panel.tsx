import { MAX_LOGPROBS, REQUEST_FIELDS } from 'virtual:request-fields';
import type { Parameters } from '../api/request-field.ts';
import { ConstraintButton } from '../constraint/constraint-button.tsx';
import { Select } from '../controls/select.tsx';
import { FieldControl } from './field-control.tsx';
import { FIELD_GROUPS, type FieldGroup } from './field-groups.ts';
import { usePlayground } from './playground-state.ts';
import { PRESETS } from './presets.ts';

const CUSTOM = 'Custom';

const isSame = (a: Parameters, b: Parameters): boolean =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());

/** All request fields in groups, with presets. */
export function ParametersPanel() {
  const { parameters } = usePlayground();
  const preset = PRESETS.find((one) => isSame(one.parameters, parameters.value))?.name ?? CUSTOM;
  const names = [...PRESETS.map(({ name }) => name), ...(preset === CUSTOM ? [CUSTOM] : [])];
  const choose = (name: string) => {
    const chosen = PRESETS.find((one) => one.name === name);
    if (chosen) parameters.value = chosen.parameters;
  };
  return (
    <div class="parameters">
      <div class="parameter-head">
        <span>Preset</span>
        <Select
          label="Preset"
          value={preset}
          options={names.map((name) => [name, name] as const)}
          onChange={choose}
        />
      </div>
      {FIELD_GROUPS.map((group) => (
        <Group key={group.title} group={group} />
      ))}
    </div>
  );
}

function Group({ group: { title, fields, section } }: { readonly group: FieldGroup }) {
  const { parameters, session } = usePlayground();
  const maximum = MAX_LOGPROBS[session.dialect.value ?? '']!;
  const set = fields.filter((name) => parameters.value[name] !== undefined);
  const change = (name: string, value: unknown) => {
    const { [name]: _, ...others } = parameters.peek();
    parameters.value = value === undefined ? others : { ...others, [name]: value };
  };
  return (
    <details class="group" open={title === 'Basics'}>
      <summary>
        <h2>{title}</h2>
        {set.length > 0 && <span class="count">{set.length} set</span>}
      </summary>
      {title === 'Constraint' && <ConstraintButton parameters={parameters} session={session} />}
      {fields.map((name) => (
        <FieldControl
          key={name}
          name={name}
          field={name === 'logprobs' ? { ...REQUEST_FIELDS[name]!, maximum } : REQUEST_FIELDS[name]!}
          value={parameters.value[name]}
          onChange={(value) => change(name, value)}
        />
      ))}
      <a class="group-link" href={`/docs/guides/api#${section}`}>
        {title} in the documentation
      </a>
    </details>
  );
}
