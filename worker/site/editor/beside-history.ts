import { invertedEffects } from '@codemirror/commands';
import { type Extension, StateEffect } from '@codemirror/state';
import { EditorView } from '@codemirror/view';

/** Changes outside of the text that undo and redo take back and bring back with it. */

export interface BesideChange {
  readonly apply: () => void;
  readonly revert: () => void;
}

export const changeBeside = StateEffect.define<BesideChange>();

const inverse = invertedEffects.of(({ effects }) =>
  effects
    .filter((effect) => effect.is(changeBeside))
    .map(({ value: { apply, revert } }) => changeBeside.of({ apply: revert, revert: apply })),
);

const applying = EditorView.updateListener.of(({ transactions }) => {
  for (const { effects } of transactions)
    for (const effect of effects) if (effect.is(changeBeside)) effect.value.apply();
});

export const besideHistory: Extension = [inverse, applying];
