import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { h } from 'preact';
import { expect, test } from 'vitest';
import { type Session, SessionContext } from '../../../../worker/site/store/session.ts';
import { newTree, ROOT } from '../../../../worker/site/tree/tree.ts';
import { TreeDialogs } from '../../../../worker/site/tree/tree-dialogs.tsx';
import { createEditor } from '../../../../worker/site/tree/tree-editor.ts';
import type { TreeState } from '../../../../worker/site/tree/tree-state.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { rendered } from '../support/rendered.ts';

test('the dialog of parameters changes what branches are asked for, and has no field that repeats the text', async () => {
  const session = { dialect: signal(null) } as unknown as Session;
  const parameters = signal<Readonly<Record<string, unknown>>>({});
  const state = { session, parameters, dialog: signal('parameters') } as unknown as TreeState;
  const position = { tree: newTree('t', 'Once'), selected: ROOT, collapsed: new Set<never>() };
  const editor = createEditor('id', position);
  const dialog = h(TreeDialogs, { state, editor });
  const page = rendered(h(SessionContext.Provider, { value: session }, dialog));
  page.write('top_k', '7');
  page.write('repetition_penalty', '1.3');
  await waitFor(() => expect(parameters.value).toEqual({ top_k: 7, repetition_penalty: 1.3 }));
  expect(page.all('code', 'echo')).toEqual([]);
});
