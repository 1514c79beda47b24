import { createHash } from 'node:crypto';
import type { CompiledGrammar } from '../constraint.ts';
import type { Program } from '../program/program.ts';
import { GrammarRuntime } from '../runtime/grammar-runtime.ts';
import type { GrammarVocabulary } from '../runtime/grammar-vocabulary.ts';

export interface GrammarCacheOptions {
  /** Maximum number of cached grammars; default 200. */
  readonly maxGrammars?: number;
  /** Maximum memory of programs and parser states in bytes; default 256 MiB. */
  readonly maxBytes?: number;
}

/** See CompilerClient.compile. */
type Compile = (wire: string, tenantId: string) => Promise<Program>;

/**
 * An LRU cache of compiled grammars by content, for one vocabulary. Equal constraints of a tenant are compiled once,
 * also concurrently. Tenants do not wait for each other's compilations.
 */
export class GrammarCache {
  readonly #vocabulary: GrammarVocabulary;
  readonly #compile: Compile;
  readonly #maxGrammars: number;
  readonly #maxBytes: number;
  readonly #grammars = new Map<string, GrammarRuntime>();
  /** Running compilations by content and tenant. */
  readonly #pending = new Map<string, Promise<GrammarRuntime>>();

  constructor(
    vocabulary: GrammarVocabulary,
    compile: Compile,
    { maxGrammars = 200, maxBytes = 256 * 2 ** 20 }: GrammarCacheOptions = {},
  ) {
    this.#vocabulary = vocabulary;
    this.#compile = compile;
    this.#maxGrammars = maxGrammars;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#grammars.size;
  }

  /**
   * @param wire a WireConstraint as JSON
   * @throws ApiError naming the error in the constraint; errors are not cached
   */
  async get(wire: string, tenantId: string): Promise<CompiledGrammar> {
    const key = createHash('sha256').update(wire).digest('base64');
    const known = this.#grammars.get(key);
    if (known) {
      this.#keep(key, known);
      return known;
    }
    const job = `${key} ${tenantId}`;
    const pending = this.#pending.get(job);
    if (pending) return await pending;
    const compilation = this.#make(key, wire, tenantId).finally(() => this.#pending.delete(job));
    this.#pending.set(job, compilation);
    return await compilation;
  }

  async #make(key: string, wire: string, tenantId: string): Promise<GrammarRuntime> {
    const program = await this.#compile(wire, tenantId);
    const grammar = this.#grammars.get(key) ?? new GrammarRuntime(program, this.#vocabulary);
    this.#keep(key, grammar);
    return grammar;
  }

  #keep(key: string, grammar: GrammarRuntime): void {
    this.#grammars.delete(key);
    this.#grammars.set(key, grammar);
    let bytes = 0;
    for (const kept of this.#grammars.values()) bytes += kept.bytes;
    for (const [oldest, dropped] of this.#grammars) {
      const fits = this.#grammars.size <= this.#maxGrammars && bytes <= this.#maxBytes;
      if (fits || oldest === key) break;
      this.#grammars.delete(oldest);
      bytes -= dropped.bytes;
    }
  }
}
