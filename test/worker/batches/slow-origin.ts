import type { GenerationRequest } from '../../../shared/generation.ts';
import { tokenLimitNumber } from '../../../shared/sampling.ts';
import type { FakeOrigin, Wire } from '../support/fake-origin.ts';
import { acceptedFor, doneFor, finishOf } from '../support/scripts.ts';

const STEP_MS = 5;

/** Generates slowly, keeps a usage account for each request, and can break all its connections. */
export class SlowOrigin {
  /** Maximum number of requests at the same time. */
  most = 0;
  /** Of each token. */
  text = 'x';
  readonly #origin: Pick<FakeOrigin, 'accounts'>;
  readonly #wires = new Set<Wire>();

  constructor(origin: Pick<FakeOrigin, 'accounts' | 'script'>) {
    this.#origin = origin;
    origin.script = (request, wire) => this.#play(request, wire);
  }

  get running(): number {
    return this.#wires.size;
  }

  /** Breaks all connections, as a killed process does. Accounts stay, as those of another origin would. */
  breakOff(): void {
    for (const wire of this.#wires) wire.die();
  }

  /** Returns the usage of each request. */
  usages() {
    return [...this.#origin.accounts.values()].map((account) => account!.usage);
  }

  /** Returns the tokens of all requests. */
  used() {
    const all = this.usages();
    const sum = (of: (usage: (typeof all)[number]) => number) =>
      all.reduce((total, one) => total + of(one), 0);
    return {
      prompt_tokens: sum(({ promptTokens }) => promptTokens),
      completion_tokens: sum(({ completionTokens }) => completionTokens),
    };
  }

  async #play(request: GenerationRequest, wire: Wire): Promise<void> {
    this.#wires.add(wire);
    this.most = Math.max(this.most, this.#wires.size);
    const { promptTokens } = (doneFor(request, 0) as { usage: { promptTokens: number } }).usage;
    const usage = { promptTokens, cachedTokens: 0, completionTokens: 0 };
    const account = { usage, finishReasons: [], ended: false };
    this.#origin.accounts.set(request.account ?? '', account);
    wire.send(...acceptedFor(request));
    const maxTokens = tokenLimitNumber(request.maxTokens);
    while (usage.completionTokens < maxTokens && !wire.gone()) {
      usage.completionTokens += 1;
      wire.send({ type: 'token', choice: 0, text: this.text, completionTokens: usage.completionTokens });
      await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    }
    account.ended = true;
    this.#wires.delete(wire);
    if (wire.gone()) return;
    wire.send(finishOf(0, 'length', usage.completionTokens), doneFor(request, usage.completionTokens));
    wire.end();
  }
}
