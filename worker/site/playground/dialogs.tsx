import { Lazy } from '../controls/lazy.tsx';
import { bodyOf, type PlaygroundState, score, usePlayground } from './playground-state.ts';

/** The dialogs of the text. Each is loaded when it is first opened. */
export function PlaygroundDialogs() {
  const state = usePlayground();
  const { dialog, content, isRunning } = state;
  const onClose = () => (dialog.value = null);
  const open = dialog.value;
  if (open === null) return null;
  if (typeof open === 'object')
    return (
      <Lazy
        key="run"
        load={async () => (await import('../copy/run-dialog.tsx')).RunDialog}
        props={{ run: open, onClose }}
      />
    );
  switch (open) {
    case 'share':
      return (
        <Lazy
          key="share"
          load={async () => (await import('../copy/share-dialog.tsx')).ShareDialog}
          props={{ shared: sharedOf(state), onClose }}
        />
      );
    case 'copy':
      return (
        <Lazy
          key="copy"
          load={async () => (await import('../copy/copy-dialog.tsx')).CopyDialog}
          props={{ body: bodyOf(state, content.value), onClose }}
        />
      );
    case 'tokens':
      return (
        <Lazy
          key="tokens"
          load={async () => (await import('../tokens/token-table.tsx')).TokenTable}
          props={{
            text: content.value.text,
            placed: content.value.tokens,
            onScore: isRunning.value ? null : () => void score(state),
            onClose,
          }}
        />
      );
  }
}

/** Returns what a link to the text brings. */
function sharedOf({ content, parameters, session: { model, dialect } }: PlaygroundState) {
  const { text, mark } = content.value;
  return { text, mark, parameters: parameters.value, model: model.value, dialect: dialect.value };
}
