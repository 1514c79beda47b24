import { MAX_LOGPROBS, REQUEST_FIELDS } from 'virtual:request-fields';
import { type Signal, useSignal } from '@preact/signals';
import type { Parameters } from '../api/request-field.ts';
import type { ConstraintDialogProps } from '../constraint/constraint-dialog.tsx';
import { Lazy } from '../controls/lazy.tsx';
import { Select } from '../controls/select.tsx';
import { useSession } from '../store/session.ts';
import { FieldControl } from './field-control.tsx';
import { FIELD_GROUPS, type FieldGroup } from './field-groups.ts';
import { PRESETS } from './presets.ts';
import { sentFields, withField } from './request-body.ts';

const CUSTOM = 'Custom';

const isSame = (a: Parameters, b: Parameters): boolean =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());

interface ParametersProps {
  readonly parameters: Signal<Parameters>;
  /** What is sent of the fields that the visitor has not changed. */
  readonly preset: Parameters;
  /** Fields that the view cannot use. */
  readonly without?: readonly string[];
}

/** All request fields in groups, with presets. */
export function ParametersPanel({ parameters, ...props }: ParametersProps) {
  const chosen = PRESETS.find((preset) => isSame(preset.parameters, parameters.value))?.name ?? CUSTOM;
  const names = [...PRESETS.map(({ name }) => name), ...(chosen === CUSTOM ? [CUSTOM] : [])];
  const choose = (name: string) => {
    const preset = PRESETS.find((each) => each.name === name);
    if (preset) parameters.value = preset.parameters;
  };
  return (
    <div class="parameters">
      <div class="parameter-head">
        <span>Preset</span>
        <Select
          label="Preset"
          value={chosen}
          options={names.map((name) => [name, name] as const)}
          onChange={choose}
        />
      </div>
      {FIELD_GROUPS.map((group) => (
        <Group key={group.title} group={group} parameters={parameters} {...props} />
      ))}
    </div>
  );
}

interface GroupProps extends ParametersProps {
  readonly group: FieldGroup;
}

function Group({ group, parameters, preset, without = [] }: GroupProps) {
  const session = useSession();
  const { title, section } = group;
  const fields = group.fields.filter((name) => !without.includes(name));
  const maximum = MAX_LOGPROBS[session.dialect.value ?? '']!;
  const sent = sentFields(preset, parameters.value);
  const set = fields.filter((name) => sent[name] !== undefined);
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
          value={sent[name]}
          onChange={(value) => (parameters.value = withField(preset, parameters.peek(), name, value))}
        />
      ))}
      <a class="group-link" href={`/docs/guides/api#${section}`}>
        {title} in the documentation
      </a>
    </details>
  );
}

/** Opens the editor of constraints, which is loaded when it is first used. */
function ConstraintButton(props: Omit<ConstraintDialogProps, 'onClose'>) {
  const isOpen = useSignal(false);
  return (
    <>
      <button type="button" class="button" onClick={() => (isOpen.value = true)}>
        Edit schema, grammar or expression
      </button>
      {isOpen.value && (
        <Lazy
          load={async () => (await import('../constraint/constraint-dialog.tsx')).ConstraintDialog}
          props={{ ...props, onClose: () => (isOpen.value = false) }}
        />
      )}
    </>
  );
}
