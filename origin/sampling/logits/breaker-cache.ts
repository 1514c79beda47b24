import type { SamplerVocabulary } from '../vocabulary.ts';
import { type Breaker, compileBreaker } from './dry-breakers.ts';

/** Breakers compiled so far, per vocabulary; the least recently used goes when a vocabulary has too many. */
export class BreakerCache {
  private readonly limit: number;
  private readonly compiled = new WeakMap<SamplerVocabulary, Map<string, Breaker>>();

  constructor(limit = 256) {
    this.limit = limit;
  }

  /** @param text not empty. */
  get(text: string, vocabulary: SamplerVocabulary): Breaker {
    const known = this.compiled.get(vocabulary) ?? new Map<string, Breaker>();
    this.compiled.set(vocabulary, known);
    const breaker = known.get(text) ?? compileBreaker(text, vocabulary);
    // Map keys stand in order of insertion: moving this one to the end keeps the least recently used first.
    known.delete(text);
    known.set(text, breaker);
    if (known.size > this.limit) known.delete(known.keys().next().value!);
    return breaker;
  }
}
