import { describe, expect, test } from 'vitest';
import { parse } from './parsing.ts';

describe('sampling', () => {
  const sampling = (body: Record<string, unknown>) => parse(body).generation.sampling;

  test('enables Mirostat 2 for a target or a rate without a mode, with a default target of 1.5', () => {
    expect(sampling({ mirostat_lr: 0.2 })).toMatchObject({ mirostat: 2, mirostatTau: 1.5, mirostatEta: 0.2 });
    expect(sampling({ mirostat_target: 3 })).toMatchObject({ mirostat: 2, mirostatTau: 3, mirostatEta: 0.1 });
    expect(sampling({ mirostat: 1 })).toMatchObject({ mirostat: 1, mirostatTau: 5 });
    expect(sampling({ mirostat: 0, mirostat_target: 3 })).toMatchObject({ mirostat: 0 });
    expect(sampling({ mirostat_tau: 3 })).toMatchObject({ mirostat: 0 });
  });

  test('Mirostat replaces samplers, however it is enabled', () => {
    const settings = { top_k: 5, typical_p: 0.5, samplers: ['temperature'] };
    expect(sampling(settings)).toMatchObject({ topK: 0, typicalP: 1 });
    for (const enabled of [{ mirostat: 2 }, { mirostat: 1 }, { mirostat_target: 3 }, { mirostat_lr: 0.2 }])
      expect(sampling({ ...settings, ...enabled })).toMatchObject({ topK: 5, typicalP: 0.5 });
    expect(sampling({ ...settings, mirostat: 0, mirostat_target: 3 })).toMatchObject({ topK: 0 });
  });

  test('treats top_k -1 and 0 as off, and seed -1 as random', () => {
    expect(sampling({ top_k: -1 }).topK).toBe(0);
    expect(sampling({ top_k: 0 }).topK).toBe(0);
    expect(sampling({ seed: -1 }).seed).toBeNull();
    expect(sampling({ seed: 0 }).seed).toBe(0);
  });

  test.each([
    ['[]', []],
    ['', []],
    ['["\\n", ":", "\\"", "*"]', ['\n', ':', '"', '*']],
    ['"\\n", ":", "\\"", "*"', ['\n', ':', '"', '*']],
  ])('reads dry_sequence_breakers as the JSON text of a list, with or without brackets: %j', (text, list) => {
    for (const dry_multiplier of [0, 0.8]) {
      const read = parse({ dry_multiplier, dry_sequence_breakers: text });
      expect(read.generation.sampling.drySequenceBreakers).toEqual(list);
      expect(read).toEqual(parse({ dry_multiplier, dry_sequence_breakers: list }));
    }
  });

  test('accepts logit_bias as a map and as pairs, and false forbids a token', () => {
    const pairs = [
      [5, -100],
      [7, null],
    ];
    expect(sampling({ logit_bias: { 5: -100, 7: false } }).logitBias).toEqual(pairs);
    expect(
      sampling({
        logit_bias: [
          [5, -100],
          [7, false],
        ],
      }).logitBias,
    ).toEqual(pairs);
  });
});
