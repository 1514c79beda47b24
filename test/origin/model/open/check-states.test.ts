import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelRunner, SlotStates } from '../../../../origin/model/model-runner.ts';
import { requireSameStates } from '../../../../origin/model/open/check-states.ts';
import { openModel } from '../../../../origin/model/open/open-model.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../../support/fake-cuda-driver.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { changedRunner, driverRunner } from '../../../tools/gpu/runners.ts';
import { writeFamilyModel } from '../../engine/support/family-model.ts';
import { modelOptions } from '../synthetic-runner.ts';

/** Gated delta networks beside attention. The card is main memory. */
describe.runIf(hasCompiler)('a card that is to compute states', () => {
  const folder = newDirectory();
  const directory = join(folder, 'model');
  let card: ModelRunner;
  beforeAll(async () => {
    await writeFamilyModel(directory, 'qwen3_5_text', 'fp32');
    card = driverRunner(directory, { slots: 4, prefillChunk: 512 }, buildFakeCudaDriver().file);
  });
  afterAll(() => card.dispose());

  /** @returns whether the card's runner was disposed, and why it was refused */
  async function checked(changes: Partial<ModelRunner> = {}) {
    let isDisposed = false;
    const runner = changedRunner(card, {
      states: card.states!,
      ...changes,
      dispose: () => void (isDisposed = true),
    });
    const opened = { runner, deviceName: 'A card' };
    const openProcessor = async () => (await openModel(modelOptions(directory, { slots: 1 }))).runner;
    const refusal = await requireSameStates(opened, 'model.onnx', openProcessor).then(
      () => null,
      (error: Error) => error.message,
    );
    return { refusal, isDisposed };
  }
  const refused = (reason: RegExp) => ({
    refusal: expect.stringMatching(
      new RegExp(
        `^A card did not show that it computes the states of model.onnx as the CPU does: ${reason.source}; set CONTINUO_PROVIDER=cpu$`,
      ),
    ) as string,
    isDisposed: true,
  });
  const withStates = (changes: Partial<SlotStates>): SlotStates => ({
    bytes: card.states!.bytes,
    keep: (...args) => card.states!.keep(...args),
    read: (...args) => card.states!.read(...args),
    write: (...args) => card.states!.write(...args),
    ...changes,
  });

  it('serves if a text, tokens after it and rows that go on from copies have the logits of the CPU', async () => {
    expect(await checked()).toEqual({ refusal: null, isDisposed: false });
  });

  it('is refused by name if it forgets what it has read', async () => {
    const zeros = new Uint8Array(card.states!.bytes);
    const changes: Partial<ModelRunner> = {
      decode: (batch) => {
        const { firstSlot, positions } = batch;
        card.states!.write(firstSlot, positions[0]!, zeros);
        return card.decode(batch);
      },
    };
    expect(await checked(changes)).toEqual(refused(/logits differ by \d+\.\d % of their range/));
  });

  it('is refused by name if copies have other states', async () => {
    const states = withStates({
      keep: (slot, position) => ({
        restore: (to, at) => {
          card.states!.keep(slot, position).restore(to, at);
          if (to === 2) card.states!.write(to, at, new Uint8Array(card.states!.bytes));
        },
      }),
    });
    expect(await checked({ states })).toEqual(refused(/logits differ by .* % of their range in row 3 of 4/));
  });

  it('is refused by name if a run fails, or the CPU cannot run the model', async () => {
    const decode = () => {
      throw new Error('no kernel');
    };
    expect(await checked({ decode })).toEqual(refused(/no kernel/));
  });
});
