import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amend, record, redo, rewrite, startHistory, undo } from '../../../../worker/site/tree/history.ts';
import { anyEdit, anyTree } from './random-tree.ts';

describe('a history', () => {
  test('undoes every edit of a tree, prunes included, and redoes it', () => {
    fc.assert(
      fc.property(anyTree, fc.array(anyEdit, { minLength: 1, maxLength: 20 }), (tree, edits) => {
        let history = startHistory(tree);
        for (const edit of edits) history = record(history, edit(history.present));
        const last = history.present;
        for (const _ of edits) history = undo(history);
        expect(history.present).toBe(tree);
        expect(undo(history)).toEqual(history);
        for (const _ of edits) history = redo(history);
        expect(history.present).toBe(last);
        expect(redo(history)).toEqual(history);
      }),
    );
  });

  test('forgets what was undone when something new happens', () => {
    const history = record(undo(record(startHistory(1), 2)), 3);
    expect(redo(history).present).toBe(3);
    expect(undo(history).present).toBe(1);
  });

  test('amends the present without a step of its own', () => {
    expect(undo(amend(record(startHistory(1), 2), 3)).present).toBe(1);
  });

  test('rewrites the states before and after the present', () => {
    const history = rewrite(undo(record(record(startHistory(1), 2), 3)), (state) => state * 10);
    expect([undo(history), history, redo(history)].map(({ present }) => present)).toEqual([10, 20, 30]);
  });

  test('keeps the last 100 states', () => {
    let history = startHistory(0);
    for (let state = 1; state <= 150; state += 1) history = record(history, state);
    for (let steps = 0; steps < 150; steps += 1) history = undo(history);
    expect(history.present).toBe(50);
  });
});
