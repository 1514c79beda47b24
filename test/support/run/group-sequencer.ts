import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { GROUPS, isLong } from './groups.ts';

/**
 * Runs the groups in the order of GROUPS, and long files of a group first: short files come last, so no
 * worker process idles at the end.
 */
export class GroupSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order: readonly string[] = GROUPS;
    const orderOf = ({ project, moduleId }: TestSpecification) =>
      2 * order.indexOf(project.name) + (isLong(moduleId) ? 0 : 1);
    return (await super.sort(files)).toSorted((a, b) => orderOf(a) - orderOf(b));
  }
}
