import type { Trace } from '../../../origin/cli/load.ts';
import type { Submission } from '../../../origin/engine/messages.ts';
import { EngineClient, spawnEngineThread } from '../../../origin/engine/thread/engine-client.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { NEUTRAL, submission } from '../../origin/engine/support/submissions.ts';
import type { Job, Target } from './target.ts';

export interface EngineTargetOptions {
  readonly directory: string;
  readonly slots: number;
  readonly contextLength: number;
  readonly threads: number;
}

/** A greedy request, which callers change as needed. */
export const benchSubmission = (job: Job, tokenizer: Tokenizer): Submission =>
  submission({
    requestId: crypto.randomUUID(),
    tenantId: job.tenant ?? 'bench',
    cachePrompt: job.cachePrompt ?? false,
    prompts: [
      {
        tokens: Int32Array.from(
          typeof job.prompt === 'string'
            ? tokenizer.encode(job.prompt, { addSpecialTokens: true, parseSpecial: true })
            : job.prompt,
        ),
        maxTokens: job.maxTokens,
      },
    ],
    ignoreEos: true,
    sampling: { ...NEUTRAL, temperature: 0 },
    constraint: job.constraint ? JSON.stringify(job.constraint) : null,
    tokenIds: false,
    eventIntervalMs: 20,
    deadline: Date.now() + 600_000,
  });

/** The engine thread without HTTP: decoding, sampling and scheduling. */
export async function engineTarget(name: string, options: EngineTargetOptions): Promise<Target> {
  const { directory, slots, contextLength, threads } = options;
  const tokenizer = Tokenizer.of(textsOf(directory));
  const data = {
    model: { directory, slots, contextLength, threads, kvLimitBytes: process.availableMemory() },
    tokenBytes: tokenizer.tokenBytes,
    eosIds: tokenizer.eosIds,
    maxWaiting: 1024,
  };
  const engine = new EngineClient({ spawn: () => spawnEngineThread(data) });
  await engine.start();
  return engineTargetOf(name, engine, (job) => benchSubmission(job, tokenizer));
}

/** A started engine, which `close` stops. */
export function engineTargetOf(
  name: string,
  engine: EngineClient,
  submissionOf: (job: Job) => Submission,
): Target {
  return {
    name,
    run: (job) =>
      new Promise((resolve) => {
        const sent = performance.now();
        const events: number[] = [];
        const generated: number[] = [];
        const end = (status: number, tokens: number, error: string | null): void => {
          const trace: Trace = { sent, events, generated, ended: performance.now(), tokens, status, error };
          resolve(trace);
        };
        const admission = engine.submit(submissionOf(job), (batch) => {
          const now = performance.now();
          for (const event of batch) {
            if (event.type === 'token') {
              events.push(now);
              generated.push(event.completionTokens);
            } else if (event.type === 'done') end(200, event.usage.completionTokens, null);
            else if (event.type === 'error') end(200, 0, event.code);
          }
        });
        void admission.then(({ admitted }) => {
          if (!admitted) end(503, 0, 'server_is_overloaded');
        });
      }),
    close: () => engine.stop(),
  };
}
