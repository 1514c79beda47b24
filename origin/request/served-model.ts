import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type { ImageInput } from '../images/prompt-images.ts';
import type { Infill } from '../infill/infill.ts';
import type { LockCaller } from '../process/fair-mutex.ts';
import type { EncodeOptions, Tokenizer } from '../tokenizer/tokenizer.ts';

/** Encodes texts. @throws the signal's reason if the client disconnects first */
interface TextEncoding {
  encode(text: string, options: EncodeOptions, caller: LockCaller): Promise<ArrayLike<number>>;
}

/** The model that the engine runs, as request preparation sees it. */
export interface ServedModel {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** Positions of one slot: prompt and completion together. */
  readonly contextLength: number;
  /** Width of the logits. Ids at or above it do not exist. */
  readonly vocabularySize: number;
  readonly tokenizer: Tokenizer;
  /** Encodes prompts. */
  readonly encoder: TextEncoding;
  /** Null if the model has no fill-in-the-middle template. */
  readonly infill: Infill | null;
  /** Null if the model does not accept images. */
  readonly images: ImageInput | null;
}

/** Describes a loaded model for GET /models. */
export const describeModel = (
  model: ServedModel,
): Omit<OriginModel, 'id' | 'aliases' | 'defaults' | 'state'> => ({
  created: model.created,
  contextLength: model.contextLength,
  vocabularySize: model.vocabularySize,
  infill: model.infill !== null,
  ...(model.images !== null && { imageTokens: model.images.positions }),
});
