import { createHash } from 'node:crypto';
import type { Program } from '@continuo/grammar/program/program.ts';

interface GrammarCacheOptions {
  /** Maximum number of cached grammars; default 200. */
  readonly maxGrammars?: number;
  /** Maximum memory of programs and parser states in bytes; default 256 MiB. */
  readonly maxBytes?: number;
}

/** Like `compile` of the compiler client. */
type Compile = (wire: string, tenantId: string) => Promise<Program>;

/** A program made ready to run. */
interface Cached {
  /** Its memory. */
  readonly bytes: number;
}

/**
 * An LRU cache of compiled grammars or patterns by content, for one vocabulary. Equal constraints of a tenant
 * are compiled once, also concurrently. Tenants do not wait for each other's compilations.
 */
export class GrammarCache<Grammar extends Cached> {
  readonly #make: (program: Program) => Grammar;
  readonly #compile: Compile;
  readonly #maxGrammars: number;
  readonly #maxBytes: number;
  readonly #grammars = new Map<string, Grammar>();
  /** Running compilations by content and tenant. */
  readonly #pending = new Map<string, Promise<Grammar>>();

  constructor(
    make: (program: Program) => Grammar,
    compile: Compile,
    { maxGrammars = 200, maxBytes = 256 * 2 ** 20 }: GrammarCacheOptions = {},
  ) {
    this.#make = make;
    this.#compile = compile;
    this.#maxGrammars = maxGrammars;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#grammars.size;
  }

  /**
   * @param wire a WireConstraint or a PatternList as JSON
   * @throws ApiError naming the error in the constraint; errors are not cached
   */
  async get(wire: string, tenantId: string): Promise<Grammar> {
    const key = createHash('sha256').update(wire).digest('base64');
    const cached = this.#grammars.get(key);
    if (cached) {
      this.#keep(key, cached);
      return cached;
    }
    const job = `${key} ${tenantId}`;
    const pending = this.#pending.get(job);
    if (pending) return await pending;
    const compilation = this.#compileNew(key, wire, tenantId).finally(() => this.#pending.delete(job));
    this.#pending.set(job, compilation);
    return await compilation;
  }

  async #compileNew(key: string, wire: string, tenantId: string): Promise<Grammar> {
    const program = await this.#compile(wire, tenantId);
    const grammar = this.#grammars.get(key) ?? this.#make(program);
    this.#keep(key, grammar);
    return grammar;
  }

  #keep(key: string, grammar: Grammar): void {
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
