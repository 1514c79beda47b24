import { existsSync, readFileSync } from 'node:fs';
import { ortFault } from '../../../origin/model/ort/ort-fault.ts';
import { OrtSession } from '../../../origin/model/ort/ort-session.ts';

/**
 * Loaded into an origin with `--import`: while the file FAULT_FILE exists, every asynchronous run of ONNX
 * Runtime fails with its content as the message of an EP_FAIL.
 */

const EP_FAIL = 11;
const file = process.env.FAULT_FILE ?? '';
const { runAsync } = OrtSession.prototype;

OrtSession.prototype.runAsync = async function (...run) {
  if (existsSync(file)) throw ortFault(EP_FAIL, readFileSync(file, 'utf8'));
  await runAsync.apply(this, run);
};
