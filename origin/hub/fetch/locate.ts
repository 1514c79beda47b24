import path from 'node:path';
import type { WeightPrecision } from '@continuo/export/graph/linear.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import type { Precision } from '../../model/config/model-files.ts';
import { bytesBelow, findCached } from './cache.ts';
import { HubUnreachable } from './hub-error.ts';
import { type PullContext, planPull, pullFiles } from './pull.ts';
import { chooseVariant, type ModelFormat, precisionOf, type Variant } from './variants.ts';

export const TOKENIZER_FILE = 'tokenizer.json';

interface LocateRequest {
  /** `owner/name` */
  readonly repository: string;
  readonly revision: string;
  /** As the user names it; null = the preferred one. */
  readonly variant: string | null;
  /** Set if the variant is a precision that can be built from published weights. */
  readonly precision: WeightPrecision | undefined;
}

/** One variant of a repository at one commit: on the hub, or in the cache. */
interface LocatedModel {
  readonly format: ModelFormat;
  readonly variant: string;
  /** Null if the directory cannot hold other precisions. */
  readonly precision: Precision | null;
  readonly hasTokenizer: boolean;
  readonly commit: string;
  readonly bytes: number;
  readonly missingBytes: number;
  /**
   * Fetches what is missing. Returns the model directory, or the first .gguf file.
   * @param check as of `pullFiles`
   * @throws HubError
   */
  readonly fetch: (check?: (directory: string) => void) => Promise<string>;
}

/**
 * Finds a model on the hub. If the hub cannot be reached, finds it in the cache.
 * @throws HubError
 */
export async function locate(request: LocateRequest, context: PullContext): Promise<LocatedModel> {
  try {
    return await locateOnHub(request, context);
  } catch (error) {
    if (!(error instanceof HubUnreachable)) throw error;
    const cached = await locateInCache(request, context).catch((missing: unknown) => {
      throw new HubUnreachable(`${error.message}; ${errorMessage(missing)}`);
    });
    context.progress.note(`${error.message}; using the cached commit ${cached.commit.slice(0, 12)}`);
    return cached;
  }
}

async function locateOnHub(request: LocateRequest, context: PullContext): Promise<LocatedModel> {
  const { repository, revision } = request;
  const plan = await planPull({ repository, revision, choose: chooserOf(request) }, context);
  const { commit, missingBytes, variant } = plan;
  const bytes = plan.files.reduce((sum, { identity }) => sum + identity.size, 0);
  const fetch: LocatedModel['fetch'] = async (check) => {
    const { snapshot } = await pullFiles(plan, context, check);
    return weightsOf(snapshot, variant);
  };
  return { ...described(variant), commit, bytes, missingBytes, fetch };
}

async function locateInCache(request: LocateRequest, { cache }: PullContext): Promise<LocatedModel> {
  const { repository, revision } = request;
  const { commit, directory, files } = await findCached(cache, repository, revision);
  const variant = chooserOf(request)(files);
  const bytes = await bytesBelow(directory);
  const fetch = async () => weightsOf(directory, variant);
  return { ...described(variant), commit, bytes, missingBytes: 0, fetch };
}

/** A precision is built from published weights if there are any, else it is a graph of that name. */
const chooserOf =
  ({ repository, variant, precision }: LocateRequest) =>
  (files: readonly string[]): Variant => {
    const preferred = chooseVariant(files, repository);
    if (variant === null || (precision !== undefined && preferred.format === 'safetensors')) return preferred;
    return chooseVariant(files, repository, variant);
  };

const described = (variant: Variant) => ({
  format: variant.format,
  variant: variant.name,
  precision: precisionOf(variant),
  hasTokenizer: variant.files.includes(TOKENIZER_FILE),
});

const weightsOf = (snapshot: string, { format, directory, files }: Variant): string =>
  path.join(snapshot, format === 'gguf' ? files[0]! : directory);
