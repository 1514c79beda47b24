import './tree.css';
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import { Dialog } from '../controls/dialog.tsx';
import { useListener } from '../controls/use-listener.ts';
import { FailureNotice } from '../playground/failure-notice.tsx';
import { takeCarried, useSession } from '../store/session.ts';
import { BranchBar } from './branch-bar.tsx';
import { NodeActions } from './node-actions.tsx';
import { ReadingView } from './reading-view.tsx';
import { plant } from './tree-commands.ts';
import { TreeDialogs } from './tree-dialogs.tsx';
import { TreeGraph } from './tree-graph.tsx';
import { bindingOf } from './tree-keys.ts';
import { TreeOutline } from './tree-outline.tsx';
import { TreeStart } from './tree-start.tsx';
import { type OpenTreeProps, openTrees, type TreeState } from './tree-state.ts';
import { TreeToolbar } from './tree-toolbar.tsx';

/** Branches of completions from one prompt. */
export function TreeView() {
  const session = useSession();
  const state = useSignal<TreeState | null>(null);
  const fault = useSignal<string | null>(null);
  useEffect(() => {
    openTrees(session).then(
      (opened) => {
        const carried = takeCarried(session, 'tree');
        if (carried) plant(opened, carried.map(({ text }) => text).join(''));
        state.value = opened;
      },
      (reason: unknown) => {
        fault.value = String(reason);
      },
    );
  }, []);
  if (fault.value !== null)
    return (
      <div class="empty" role="alert">
        <h1>Trees cannot be stored here</h1>
        <p>
          The browser's database does not open ({fault.value}). Private windows of some browsers have none.
        </p>
      </div>
    );
  return state.value && <OpenedTrees state={state.value} />;
}

function OpenedTrees({ state }: { readonly state: TreeState }) {
  const editor = state.library.editor.value;
  const { refused } = state;
  const { saver, inOtherTab } = state.library;
  return (
    <div class="tree-view">
      <TreeToolbar state={state} editor={editor} />
      {saver.fault.value !== null && (
        <p class="notice" role="alert">
          This browser does not keep the tree ({saver.fault.value}). Export it before you leave.
        </p>
      )}
      {inOtherTab.value !== null && (
        <p class="notice" role="alert">
          The tree “{inOtherTab.value}” is open in another tab. Close that tab, then choose the tree again.
        </p>
      )}
      {refused.value !== null && (
        <Dialog title="This file cannot be imported" onClose={() => (refused.value = null)}>
          <p>{refused.value}</p>
        </Dialog>
      )}
      {editor ? <OpenTree key={editor.id} state={state} editor={editor} /> : <TreeStart state={state} />}
    </div>
  );
}

function OpenTree({ state, editor }: OpenTreeProps) {
  const failed = state.branching.failed.value;
  const Nodes = state.graph.value ? TreeGraph : TreeOutline;
  // Keys work as soon as the tree is seen.
  useListener('keydown', (event) => {
    const binding = bindingOf(event);
    if (!binding) return;
    event.preventDefault();
    binding.run(state, editor, event.key);
  });
  const { tree, selected } = editor.position.value;
  // The place of a token means nothing in another node.
  useLayoutEffect(() => () => void (state.cursor.value = null), [editor, selected]);
  return (
    <>
      <h1 class="visually-hidden">{tree.name}</h1>
      <div class={`tree-panes ${state.graph.value ? 'with-graph' : ''}`}>
        <Nodes editor={editor} growing={state.branching.growing.value} />
        <div class="reading-pane">
          <NodeActions state={state} editor={editor} />
          <ReadingView state={state} editor={editor} />
        </div>
      </div>
      {failed && <FailureNotice failure={failed.failure} onRetry={failed.retry} />}
      <BranchBar state={state} editor={editor} />
      <TreeDialogs state={state} editor={editor} />
    </>
  );
}
