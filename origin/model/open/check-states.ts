import { oneLine } from '@continuo/shared/error-details.ts';
import { ModelError } from '../config/model-json.ts';
import type { ModelRunner } from '../model-runner.ts';
import { type ComparedRunners, compareLogits, compareText, oneRow } from '../runner/compare-runners.ts';

/** Longer than windows of convolutions, and two runs of a processor. */
const TEXT_TOKENS = 48;
/** For the text and what follows it. */
const POSITIONS = 64;
/** Rows that go on together from copies of KV and state. */
const MAX_ROWS = 8;

/**
 * Compares a card with the processor, because no card has shown yet that it computes states.
 * @param opened disposed if this throws
 * @param openProcessor opens the same model with one slot
 * @throws ModelError if logits differ, or the processor cannot run the model
 */
export async function requireSameStates(
  { runner, deviceName }: { readonly runner: ModelRunner; readonly deviceName: string },
  file: string,
  openProcessor: (positions: number) => Promise<ModelRunner>,
): Promise<void> {
  try {
    const processor = await openProcessor(POSITIONS);
    const fault = await stateFault([runner, processor]).finally(() => processor.dispose());
    if (fault !== null) throw new Error(fault);
  } catch (error) {
    runner.dispose();
    const where = `${deviceName} did not show that it computes the states of ${file} as the CPU does`;
    throw new ModelError(`${where}: ${oneLine(error)}; set CONTINUO_PROVIDER=cpu`, { cause: error });
  }
}

/**
 * Compares a text, tokens after it, and rows of several slots that go on from copies of its KV and state.
 * Returns what differs, or null.
 */
async function stateFault(runners: ComparedRunners): Promise<string | null> {
  const [device, processor] = runners;
  const { slots, vocabularySize } = device.shape;
  const prompt = Int32Array.from({ length: TEXT_TOKENS }, (_, at) => (7 * at + 1) % vocabularySize);
  const { fault, best, length } = await compareText(runners, prompt);
  if (fault !== null) return fault;
  const rows = Math.min(slots, MAX_ROWS);
  const kept = device.states?.keep(0, length);
  for (let slot = 1; slot < rows; slot++) {
    device.copy(0, slot, length);
    kept?.restore(slot, length);
  }
  const expected = await processor.decode(oneRow(0, best, length));
  const tokens = new Int32Array(rows).fill(best);
  const positions = new Int32Array(rows).fill(length);
  const logits = await device.decode({ firstSlot: 0, rows, tokens, positions });
  for (let row = 0; row < rows; row++) {
    const ofRow = logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
    const { fault: ofCopy } = compareLogits(ofRow, expected);
    if (ofCopy !== null) return `${ofCopy} in row ${row + 1} of ${rows}`;
  }
  return null;
}
