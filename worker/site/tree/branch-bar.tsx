import { Icon } from '../controls/icon.tsx';
import { NumberField } from '../controls/number-field.tsx';
import { branch } from './tree-commands.ts';
import type { TreeEditor } from './tree-editor.ts';
import { DEFAULT_N, type TreeState } from './tree-state.ts';

/** Fields beside the button; the dialog has all. */
const FIELDS = ['max_tokens', 'temperature', 'seed'] as const;

interface BranchBarProps {
  readonly state: TreeState;
  readonly editor: TreeEditor;
}

/** The button that branches, and what is requested with it. */
export function BranchBar({ state, editor }: BranchBarProps) {
  const { n, parameters, branching, cursor, dialog } = state;
  const running = branching.growing.value.size > 0;
  const set = (name: string, value: number | undefined) => {
    const { [name]: _, ...others } = parameters.peek();
    parameters.value = value === undefined ? others : { ...others, [name]: value };
  };
  return (
    <div class="branch-bar">
      <div class="row">
        <button type="button" class="button primary" onClick={() => branch(state, editor)}>
          <Icon name="branch" />
          {cursor.value ? 'Branch at token' : 'Branch'}
        </button>
        <button type="button" class="button" disabled={!running} onClick={branching.stop}>
          <Icon name="stop" />
          Stop
        </button>
        <button
          type="button"
          class="button"
          title="All parameters (p)"
          onClick={() => (dialog.value = 'parameters')}
        >
          <Icon name="sliders" />
          Parameters
        </button>
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
