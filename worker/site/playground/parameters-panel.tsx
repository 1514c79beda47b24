import { MAX_LOGPROBS, REQUEST_FIELDS } from 'virtual:request-fields';
import { type Signal, useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import type { Parameters } from '../api/request-field.ts';
import type { ConstraintDialogProps } from '../constraint/constraint-dialog.tsx';
import { Select } from '../controls/select.tsx';
import { useSession } from '../store/session.ts';
import { FieldControl } from './field-control.tsx';
import { FIELD_GROUPS, type FieldGroup } from './field-groups.ts';
import { PRESETS } from './presets.ts';

const CUSTOM = 'Custom';

const isSame = (a: Parameters, b: Parameters): boolean =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());

interface ParametersProps {
  readonly parameters: Signal<Parameters>;
}

/** All request fields in groups, with presets. @param without title of a group to leave out */
export function ParametersPanel({ parameters, without }: ParametersProps & { readonly without?: string }) {
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
      {FIELD_GROUPS.filter(({ title }) => title !== without).map((group) => (
        <Group key={group.title} group={group} parameters={parameters} />
      ))}
    </div>
  );
}

interface GroupProps extends ParametersProps {
  readonly group: FieldGroup;
}

function Group({ group: { title, fields, section }, parameters }: GroupProps) {
  const session = useSession();
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

/** Opens the editor of constraints, which is loaded when it is first used. */
function ConstraintButton(props: Omit<ConstraintDialogProps, 'onClose'>) {
  const Opened = useSignal<ComponentType<ConstraintDialogProps> | null>(null);
  const open = async () => {
    const { ConstraintDialog } = await import('../constraint/constraint-dialog.tsx');
    Opened.value = ConstraintDialog;
  };
  return (
    <>
      <button type="button" class="button" onClick={() => void open()}>
        Edit schema, grammar or expression
      </button>
      {Opened.value && <Opened.value {...props} onClose={() => (Opened.value = null)} />}
    </>
  );
}
