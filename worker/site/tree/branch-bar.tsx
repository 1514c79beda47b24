import { Button } from '../controls/button.tsx';
import { NumberField } from '../controls/number-field.tsx';
import { branch } from './tree-commands.ts';
import { DEFAULT_N, type OpenTreeProps } from './tree-state.ts';

/** Fields beside the button; the dialog has all. */
const FIELDS = ['max_tokens', 'temperature', 'seed'] as const;

/** The button that branches, and what is requested with it. */
export function BranchBar({ state, editor }: OpenTreeProps) {
  const { n, parameters, branching, cursor, dialog } = state;
  const running = branching.growing.value.size > 0;
  const set = (name: string, value: number | undefined) => {
    const { [name]: _, ...others } = parameters.peek();
    parameters.value = value === undefined ? others : { ...others, [name]: value };
  };
  return (
    <div class="branch-bar">
      <div class="row">
        <Button
          class="primary"
          icon="branch"
          text={cursor.value ? 'Branch at token' : 'Branch'}
          onClick={() => branch(state, editor)}
        />
        <Button icon="stop" text="Stop" disabled={!running} onClick={branching.stop} />
        <Button
          icon="sliders"
          text="Parameters"
          title="All parameters (p)"
          onClick={() => (dialog.value = 'parameters')}
        />
      </div>
      <div class="branch-fields">
        <NumberField name="n" value={n.value} onChange={(value = DEFAULT_N) => (n.value = value)} />
        {FIELDS.map((name) => (
          <NumberField
            key={name}
            name={name}
            value={parameters.value[name] as number | undefined}
            onChange={(value) => set(name, value)}
          />
        ))}
      </div>
    </div>
  );
}
