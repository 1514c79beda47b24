/** States that can be undone and redone. */
export interface History<State> {
  readonly past: readonly State[];
  readonly present: State;
  readonly future: readonly State[];
}

const MAX_STATES = 100;

export const startHistory = <State>(present: State): History<State> => ({ past: [], present, future: [] });

export const record = <State>({ past, present }: History<State>, next: State): History<State> => ({
  past: [...past, present].slice(-MAX_STATES),
  present: next,
  future: [],
});

/** Changes the present without a step of its own, such as the selection. */
export const amend = <State>(history: History<State>, present: State): History<State> => ({
  ...history,
  present,
});

/** Applies a change to all states, such as text that arrives, so that no undo takes it back in part. */
export const rewrite = <State>(
  { past, present, future }: History<State>,
  change: (state: State) => State,
): History<State> => ({ past: past.map(change), present: change(present), future: future.map(change) });

export function undo<State>({ past, present, future }: History<State>): History<State> {
  const previous = past.at(-1);
  if (previous === undefined) return { past, present, future };
  return { past: past.slice(0, -1), present: previous, future: [present, ...future] };
}

export function redo<State>({ past, present, future }: History<State>): History<State> {
  const [next, ...later] = future;
  if (next === undefined) return { past, present, future };
  return { past: [...past, present], present: next, future: later };
}
