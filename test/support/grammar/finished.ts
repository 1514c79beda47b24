import { UnfinishedWork } from '../../../origin/grammar/runtime/constraint.ts';

/** Calls an operation of a constraint until its work is finished. */
export function finished<T>(operation: () => T, onUnfinished: () => void = () => {}): T {
  for (;;) {
    try {
      return operation();
    } catch (error) {
      if (!(error instanceof UnfinishedWork)) throw error;
      onUnfinished();
    }
  }
}
