import { describe, expect, it } from 'vitest';
import type { StepReport } from '../../../../origin/engine/messages.ts';
import { Outbox } from '../../../../origin/engine/runs/outbox.ts';
import type { GenerationEvent } from '../../../../shared/generation.ts';

const STATUS = { running: 1, waiting: 0, healthy: true };
const event = (choice: number): GenerationEvent => ({
  type: 'token',
  choice,
  text: 'a',
  completionTokens: 1,
});
const report: StepReport = {
  kind: 'decode',
  rows: 1,
  tokens: 1,
  modelMs: 2,
  samplingMs: 1,
  otherMs: 0,
};

describe('the outbox', () => {
  it('sends every event and report of a step once, the events of a request in order', () => {
    const outbox = new Outbox();
    outbox.add('a', event(0));
    outbox.add('b', event(0));
    outbox.add('a', event(1), event(2));
    outbox.addReport(report);
    expect(outbox.take(() => STATUS, false)).toEqual({
      type: 'step',
      events: [
        ['a', [event(0), event(1), event(2)]],
        ['b', [event(0)]],
      ],
      reports: [report],
      status: STATUS,
    });
    expect(outbox.take(() => STATUS, false)).toBeNull();
    expect(outbox.take(() => STATUS, true)).toEqual({
      type: 'step',
      events: [],
      reports: [],
      status: STATUS,
    });
  });

  it('collects the reports of steps without events until there are 32', () => {
    const outbox = new Outbox();
    const sent: number[] = [];
    for (let step = 0; step < 100; step++) {
      outbox.addReport(report);
      const message = outbox.take(() => STATUS, false);
      if (message?.type === 'step') sent.push(message.reports.length);
    }
    expect(sent).toEqual([32, 32, 32]);
  });
});
