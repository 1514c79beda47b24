import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelOptions } from '../../../origin/model/open/plan-model.ts';
import type { SyntheticLayout, SyntheticModel } from '../../support/synthetic/synthetic-model.ts';

/** An invalid model directory, and the expected error. */
export interface Fault {
  readonly fault: string;
  readonly model?: Partial<SyntheticModel>;
  readonly place?: Partial<SyntheticLayout>;
  readonly options?: Partial<ModelOptions>;
  readonly damage?: (directory: string) => void;
  readonly message: RegExp;
}

export function editConfig(changes: Record<string, unknown>, file = 'config.json') {
  return (directory: string) => {
    const path = join(directory, file);
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...changes }));
  };
}

/** Replaces text in the model file by text of the same length. */
export function editModel(from: string, to: string, file = 'model.onnx') {
  return (directory: string) => {
    const path = join(directory, file);
    writeFileSync(path, Buffer.from(readFileSync(path, 'latin1').replaceAll(from, to), 'latin1'));
  };
}

export const remove = (file: string) => (directory: string) => rmSync(join(directory, file));
