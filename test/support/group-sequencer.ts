import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { GROUPS } from './groups.ts';

/** Runs the groups in the order of GROUPS: short files come last, so no worker process idles at the end. */
export class GroupSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order: readonly string[] = GROUPS;
    const orderOf = ({ project }: TestSpecification) => order.indexOf(project.name);
    return (await super.sort(files)).toSorted((a, b) => orderOf(a) - orderOf(b));
  }
}
