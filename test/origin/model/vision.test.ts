import { describe, expect, it } from 'vitest';
import { readImageRecipe } from '../../../origin/model/config/preprocessor-config.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { PREPROCESSOR, writeVisionModel } from '../../support/synthetic/vision-model.ts';
import { editConfig, editModel, remove } from './fault.ts';
import { modelOptions, temporaryDirectory } from './synthetic-runner.ts';

type Change = (directory: string) => void;

const editPreprocessor = (changes: Record<string, unknown>) =>
  editConfig(changes, 'preprocessor_config.json');

/** The one line that stops the start. */
async function fault(damage: Change): Promise<string> {
  const directory = temporaryDirectory();
  writeVisionModel(directory);
  damage(directory);
  const opened = await openModel(modelOptions(directory)).catch((error: Error) => error);
  if (!(opened instanceof Error)) throw new Error('the model should not have started');
  expect(opened.name).toBe('ModelError');
  return opened.message.replace(directory, 'DIRECTORY');
}

it('a model with images describes its preparation', async () => {
  const directory = temporaryDirectory();
  writeVisionModel(directory);
  const { runner, images, summary } = await openModel(modelOptions(directory));
  expect(images?.positions).toBe(9);
  expect(summary).toMatch(/^decoder_model_merged\.onnx: .*; images of 12 × 12 in 9 positions; KV cache/);
  runner.dispose();
  images?.dispose();
});

it.each<[string, Change, RegExp]>([
  [
    'no embedding',
    remove('embed_tokens.onnx'),
    /^DIRECTORY has no embed_tokens\.onnx, which decoder_model_merged\.onnx needs$/,
  ],
  ['no encoder', remove('vision_encoder.onnx'), /^DIRECTORY has no vision_encoder\.onnx, which decoder/],
  [
    'no preprocessor_config.json',
    remove('preprocessor_config.json'),
    /^DIRECTORY has no preprocessor_config\.json$/,
  ],
  [
    'no image token',
    editConfig({ image_token_index: null }),
    /^config\.json has no image_token_id, but .* reads inputs_embeds; if this is a text model, export it with its embedding \(without exclude_embeds\), so that it reads input_ids$/,
  ],
  [
    'an image token outside the vocabulary',
    editConfig({ image_token_index: 320 }),
    /^config\.json: token id 320 is outside/,
  ],
  [
    'another length of images',
    editConfig({ image_seq_length: 10 }),
    /^vision_encoder\.onnx gives 9 vectors .* image_seq_length 10$/,
  ],
  [
    'an encoder that wants more than pixels',
    editModel('pixel_values', 'pixel_valuez', 'vision_encoder.onnx'),
    /^vision_encoder\.onnx lacks the input pixel_values$/,
  ],
  [
    'an encoder of another name',
    editModel('image_features', 'image_featurez', 'vision_encoder.onnx'),
    /^vision_encoder\.onnx lacks the output image_features$/,
  ],
  [
    'an embedding of other names',
    editModel('inputs_embeds', 'inputs_embedz', 'embed_tokens.onnx'),
    /^embed_tokens\.onnx lacks the output inputs_embeds$/,
  ],
  [
    'images of another size than the encoder takes',
    editPreprocessor({ crop_size: 16, size: 16 }),
    /^vision_encoder\.onnx .*/,
  ],
  [
    'images cut into several',
    editPreprocessor({ do_image_splitting: true }),
    /^preprocessor_config\.json: do_image_splitting is not supported$/,
  ],
])('%s stops the start with one line', async (_, damage, message) => {
  const line = await fault(damage);
  expect(line).toMatch(message);
  expect(line).not.toContain('\n');
});

describe('preprocessor_config.json', () => {
  const recipe = (changes: Record<string, unknown>) => {
    const directory = temporaryDirectory();
    writeVisionModel(directory);
    editPreprocessor(changes)(directory);
    return readImageRecipe(directory);
  };

  it('names every step', () => {
    expect(recipe({})).toEqual({
      resize: { kernel: 'bicubic', size: 12 },
      height: 12,
      width: 12,
      factor: 1 / 255,
      mean: PREPROCESSOR.image_mean,
      deviation: PREPROCESSOR.image_std,
    });
  });

  it('a bare size is the shortest edge before a crop, otherwise a square', () => {
    expect(recipe({ size: 14, crop_size: 12 })).toMatchObject({
      resize: { size: 14 },
      height: 12,
      width: 12,
    });
    const whole = recipe({ size: 14, do_center_crop: false, resample: 2 });
    expect(whole).toMatchObject({
      resize: { kernel: 'bilinear', size: { height: 14, width: 14 } },
      height: 14,
    });
    const given = recipe({ size: { height: 10, width: 20 }, do_center_crop: false });
    expect(given).toMatchObject({ height: 10, width: 20 });
  });

  it('steps can be omitted', () => {
    expect(recipe({ do_resize: false }).resize).toBeNull();
    expect(recipe({ do_rescale: false }).factor).toBe(1);
    expect(recipe({ do_normalize: false })).toMatchObject({ mean: [0, 0, 0], deviation: [1, 1, 1] });
  });

  it.each([
    [{ do_center_crop: false }, /images of varying size are not supported/],
    [{ do_pad: true }, /do_pad is not supported/],
    [{ image_grid_pinpoints: [[336, 672]] }, /image_grid_pinpoints is not supported/],
    [{ resample: 4 }, /resample: only 0 \(nearest\)/],
    [{ resample: null }, /resample is missing/],
    [{ size: null }, /size is missing/],
    [{ image_mean: null }, /image_mean or image_std is missing/],
    [{ image_std: [1, 2] }, /image_std/],
    [{ image_std: [1, 2, 0] }, /image_std/],
    [{ crop_size: null }, /crop_size is missing/],
  ])('%j is refused', (changes, message) => {
    expect(() => recipe(changes)).toThrow(message);
  });
});
