import { Button } from '../controls/button.tsx';
import type { TextEditor } from '../editor/text-editor.ts';
import { FIELD_GROUPS } from './field-groups.ts';
import { type PlaygroundState, usePlayground } from './playground-state.ts';

const IN_FRAGMENT = /#\/share=([\w-]*)/;

/** Takes the text of a link out of the address, and puts it into the editor as one step of its history. */
export async function takeShared(state: PlaygroundState, editor: TextEditor): Promise<void> {
  const packed = IN_FRAGMENT.exec(location.hash)?.[1];
  if (packed === undefined) return;
  // A reload keeps the text, and must not bring it again.
  history.replaceState(null, '', '#/');
  const { readShared } = await import('../copy/share-link.ts');
  const shared = await readShared(
    packed,
    FIELD_GROUPS.flatMap(({ fields }) => fields),
  );
  state.generation.stop();
  await state.generation.ended;
  if (state.editor.peek() !== editor) return;
  if (shared === null) {
    state.arrival.value = {
      fault: 'The link has no text of this page, or only a part of it. Ask for it again.',
    };
    return;
  }
  const { session, parameters, arrival } = state;
  const now = () => ({
    parameters: parameters.peek(),
    model: session.model.peek(),
    dialect: session.dialect.peek(),
    mark: editor.content.mark,
    arrival: arrival.peek(),
  });
  const set = (next: ReturnType<typeof now>) => {
    parameters.value = next.parameters;
    session.model.value = next.model;
    session.dialect.value = next.dialect;
    editor.placeMark(next.mark);
    arrival.value = next.arrival;
  };
  const before = now();
  const after = { ...shared, arrival: { made: shared.made, model: shared.model } };
  editor.setText(shared.text, [], { apply: () => set(after), revert: () => set(before) });
  editor.focus();
}

/** Says that the text came from a link, or why it did not. */
export function Arrival() {
  const { arrival } = usePlayground();
  if (arrival.value === null) return null;
  return (
    <div class="arrival row spread" role="status">
      <p>
        {'fault' in arrival.value ? (
          <span class="error-text">{arrival.value.fault}</span>
        ) : (
          `Text and parameters came from a link${arrival.value.made && ` of ${arrival.value.made}`}, for the model ${arrival.value.model}. Undo brings back what was here.`
        )}
      </p>
      <Button class="plain" text="Close" onClick={() => (arrival.value = null)} />
    </div>
  );
}
