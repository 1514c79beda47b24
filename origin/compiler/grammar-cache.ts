import { hash } from 'node:crypto';
import type { Program } from '@continuo/grammar/program/program.ts';
import { LruMap } from '@continuo/shared/lru-map.ts';

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
  readonly #grammars = new LruMap<string, Grammar>();
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
    const key = hash('sha256', wire, 'base64');
    const cached = this.#grammars.get(key);
    if (cached) {
      this.#trim();
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
    this.#grammars.set(key, grammar);
    this.#trim();
    return grammar;
  }

  /** Grammars grow as they are used, so all are counted anew. The one used last stays. */
  #trim(): void {
    const grammars = this.#grammars;
    let bytes = 0;
    for (const kept of grammars.values()) bytes += kept.bytes;
    const hasTooMany = () =>
      grammars.size > 1 && (grammars.size > this.#maxGrammars || bytes > this.#maxBytes);
    grammars.trim(hasTooMany, (dropped) => (bytes -= dropped.bytes));
  }
}
