import { Icon } from '../controls/icon.tsx';
import { NumberField } from '../controls/number-field.tsx';
import { branch } from './tree-commands.ts';
import type { TreeEditor } from './tree-editor.ts';
import type { TreeState } from './tree-state.ts';

const FIELDS = ['max_tokens', 'temperature', 'top_p', 'min_p', 'seed'] as const;
const DEFAULT_N = 4;

interface BranchBarProps {
  readonly state: TreeState;
  readonly editor: TreeEditor;
}

/** The button that branches, and what is requested with it. */
export function BranchBar({ state, editor }: BranchBarProps) {
  const { settings, branching, cursor } = state;
  const { n, parameters } = settings.value;
  const running = branching.growing.value.size > 0;
  const set = (name: string, value: number | undefined) => {
    settings.value = { n, parameters: { ...parameters, [name]: value } };
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
      </div>
      <div class="branch-fields">
        <NumberField
          name="n"
          value={n}
          onChange={(value) => (settings.value = { n: value ?? DEFAULT_N, parameters })}
        />
        {FIELDS.map((name) => (
          <NumberField
            key={name}
            name={name}
            value={parameters[name] as number | undefined}
            onChange={(value) => set(name, value)}
          />
        ))}
      </div>
    </div>
  );
}
