import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { textsOf } from '../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../origin/tokenizer/tokenizer.ts';
import { completionResponse } from '../../shared/completion-response.ts';
import { float64Llama } from '../support/float64-llama.ts';
import { float64Encoder } from '../support/float64-vision.ts';
import { forAllTests } from '../support/for-tests.ts';
import { newDirectory } from '../support/new-directory.ts';
import { DEVIATION, EYE, MEAN, writeVisionModel } from '../support/synthetic/vision-model.ts';
import { startSystem } from '../support/system.ts';
import { chunksOf } from '../worker/support/sse.ts';

/** An image as a data URL, and the pixels that the model must receive. */

const directory = newDirectory();
const system = forAllTests(() => {
  writeVisionModel(directory);
  return startSystem({
    CONTINUO_MODEL_DIR: directory,
    CONTINUO_MODEL_NAME: 'seeing',
    CONTINUO_SLOTS: '4',
  });
});

const WIDTH = 20;
const level = (x: number, y: number, channel: number) => (x * 31 + y * 17 + channel * 80 + x * y) % 256;

/** Has the encoder's height and is wider, so that it is cropped to the centre without resizing. */
async function picture(): Promise<string> {
  const data = Buffer.alloc(3 * WIDTH * EYE.edge);
  data.forEach((_, i) => {
    const pixel = Math.floor(i / 3);
    data[i] = level(pixel % WIDTH, Math.floor(pixel / WIDTH), i % 3);
  });
  const png = await sharp(data, { raw: { width: WIDTH, height: EYE.edge, channels: 3 } })
    .png()
    .toBuffer();
  return `data:image/png;base64,${png.toString('base64')}`;
}

function seen(): Float64Array {
  const left = (WIDTH - EYE.edge) / 2;
  const area = EYE.edge * EYE.edge;
  return Float64Array.from({ length: 3 * area }, (_, i) => {
    const channel = Math.floor(i / area);
    const value = level(left + (i % EYE.edge), Math.floor((i % area) / EYE.edge), channel) / 255;
    return (value - MEAN[channel]!) / DEVIATION[channel]!;
  });
}

const post = (body: object) =>
  system.request('/v1/completions', { model: 'seeing', max_tokens: 8, temperature: 0, ...body });
const complete = async (body: object) => completionResponse.parse(await (await post(body)).json());
const refusal = async (body: object) => {
  const response = await post(body);
  const { error } = (await response.json()) as { error: object };
  return { status: response.status, ...error };
};

describe('a completion of a prompt with an image', () => {
  const prompt = 'What is <image>? It is';

  test('matches a float64 forward pass and counts the image as prompt tokens', async () => {
    const tokenizer = Tokenizer.of(textsOf(directory));
    const llama = float64Llama.load(join(directory, 'decoder_model_merged.onnx'), [
      join(directory, 'embed_tokens.onnx'),
    ]);
    const ids = (text: string) => tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: true });
    const vectors = [
      ...llama.embed(ids('What is ')),
      ...float64Encoder(join(directory, 'vision_encoder.onnx'))(seen(), EYE.edge),
      ...llama.embed(ids('? It is')),
    ];
    const { choices, usage } = await complete({
      prompt,
      images: [await picture()],
      logprobs: 1,
      ignore_eos: true,
      return_token_ids: true,
    });
    expect(usage?.prompt_tokens).toBe(vectors.length);
    const { logprobs, token_ids: generated } = choices[0]!;
    expect(generated).toHaveLength(8);
    for (const [step, id] of generated!.entries()) {
      const row = llama.forwardVectors(vectors).at(-1)!;
      const most = Math.max(...row);
      expect(id).toBe(row.indexOf(most));
      const logprob = -Math.log(row.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
      expect(Math.abs(logprobs!.token_logprobs![step]! - logprob)).toBeLessThan(2e-5);
      vectors.push(...llama.embed([id]));
    }
  });

  test('is the same streamed, for every n, with the echoed prompt', async () => {
    const images = [await picture()];
    const plain = await complete({ prompt, images });
    const copies = await complete({ prompt, images, n: 2, echo: true });
    expect(copies.choices.map(({ text }) => text)).toEqual(Array(2).fill(prompt + plain.choices[0]!.text));
    expect(copies.usage?.prompt_tokens).toBe(plain.usage?.prompt_tokens);
    const chunks = chunksOf(await (await post({ prompt, images, stream: true })).text());
    expect(chunks.map(({ choices }) => choices[0]?.text).join('')).toBe(plain.choices[0]!.text);
  });

  test('is refused with the name of the faulty image while other requests continue', async () => {
    const whole = await picture();
    const images = [whole, whole.slice(0, 200)];
    expect(await refusal({ prompt: '<image><image>', images })).toMatchObject({
      status: 400,
      param: 'images[1]',
    });
    expect(await refusal({ prompt: '<image>' })).toMatchObject({ status: 400, param: 'images' });
    expect((await complete({ prompt: 'No image' })).choices[0]?.text).not.toBe('');
    expect(system.log('origin')).not.toContain(whole.slice(40, 80));
  });
});
