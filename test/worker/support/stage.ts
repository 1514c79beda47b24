import type { GenerationRequest } from '../../../shared/generation.ts';
import { eventually } from './eventually.ts';
import type { FakeOrigin, Wire } from './fake-origin.ts';
import { acceptedFor, doneFor, finishOf } from './scripts.ts';
import type { WorkerClient } from './worker.ts';

/** Isolates, for the header that `distant-limiter.ts` reads. */
export const ISOLATES = ['a', 'b', 'c'];

const STEP_MS = 10;
const PROMPT_TOKENS = 2;

/** An origin whose generations run until `endAll` or a disconnect, with a usage account for each. */
export class Stage {
  running = 0;
  /** Maximum number of generations that ran at the same time. */
  most = 0;
  readonly #origin: FakeOrigin;
  readonly #playing = new Set<{ ending: boolean }>();

  constructor(origin: FakeOrigin) {
    this.#origin = origin;
    origin.script = (request, wire) => this.#play(request, wire);
  }

  /** Ends the running generations. */
  endAll(): void {
    for (const play of this.#playing) play.ending = true;
  }

  /** Returns the usage of all generations so far. */
  generated() {
    const all = [...this.#origin.accounts.values()];
    const completionTokens = all.reduce((total, one) => total + (one?.usage.completionTokens ?? 0), 0);
    return { requests: all.length, promptTokens: all.length * PROMPT_TOKENS, completionTokens };
  }

  async #play(request: GenerationRequest, wire: Wire): Promise<void> {
    const play = { ending: false };
    this.#playing.add(play);
    this.running += 1;
    this.most = Math.max(this.most, this.running);
    const usage = { promptTokens: PROMPT_TOKENS, cachedTokens: 0, completionTokens: 0 };
    const account = { usage, finishReasons: [], ended: false };
    this.#origin.accounts.set(request.account ?? '', account);
    wire.send(...acceptedFor(request));
    while (!play.ending && !wire.gone()) {
      usage.completionTokens += 1;
      wire.send({ type: 'token', choice: 0, text: 'x', completionTokens: usage.completionTokens });
      await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    }
    account.ended = true;
    this.running -= 1;
    this.#playing.delete(play);
    if (wire.gone()) return;
    const { completionTokens } = usage;
    wire.send(finishOf(0, 'length', completionTokens), doneFor(request, completionTokens));
    wire.end();
  }
}

/** Opens `count` streams at the same time, from all isolates in turn; returns the admitted ones. */
export async function open(
  worker: WorkerClient,
  key: string,
  count: number,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Response[]> {
  const body = { model: 'org/tiny', prompt: 'Hi', max_tokens: 2000, stream: true, ...fields };
  const answers = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      worker.post(body, {
        headers: { authorization: `Bearer ${key}`, 'x-isolate': ISOLATES[index % ISOLATES.length]! },
      }),
    ),
  );
  return answers.filter(({ status }) => status === 200);
}

/** Opens streams in all isolates until all slots are taken: isolates keep unused slots for a while. */
export async function takeAll(worker: WorkerClient, key: string, slots: number): Promise<Response[]> {
  const taken: Response[] = [];
  return eventually(
    async () => {
      taken.push(...(await open(worker, key, 12)));
      return taken;
    },
    ({ length }) => length >= slots,
  );
}
