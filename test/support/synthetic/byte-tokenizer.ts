import { writeFileSync } from 'node:fs';
import path from 'node:path';

/** A byte-level BPE for synthetic models: 256 bytes, runs of two to four letters, then `<s>` and `</s>`. */

/** GPT-2's byte characters, from the published rule: printable Latin-1 first, the rest from U+0100 on. */
function byteCharacters(): string[] {
  const kept = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let extra = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(kept(byte) ? byte : extra++));
}

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz'];

function* mergedPairs(): Generator<readonly [string, string]> {
  for (const first of LETTERS) for (const second of LETTERS) yield [first, second];
  const pairs = LETTERS.flatMap((first) => LETTERS.map((second) => first + second));
  for (const pair of pairs) for (const third of LETTERS) yield [pair, third];
  for (const pair of pairs) {
    for (const third of LETTERS) for (const fourth of LETTERS) yield [pair + third, fourth];
  }
}

/**
 * Writes tokenizer.json and tokenizer_config.json with exactly `vocabulary` ids; the last two begin and end
 * texts.
 * @param others special tokens that take the ids before them
 */
export function writeByteTokenizer(
  directory: string,
  vocabulary: number,
  others: readonly string[] = [],
): void {
  const texts = byteCharacters();
  const merges: string[] = [];
  const plain = vocabulary - 2 - others.length;
  for (const [left, right] of mergedPairs()) {
    if (texts.length === plain) break;
    texts.push(left + right);
    merges.push(`${left} ${right}`);
  }
  if (texts.length !== plain) throw new RangeError(`no byte tokenizer of ${vocabulary} ids`);
  const special = (id: number, content: string) => ({
    id,
    content,
    special: true,
    normalized: false,
    lstrip: false,
    rstrip: false,
    single_word: false,
  });
  const tokenizer = {
    version: '1.0',
    added_tokens: [...others, '<s>', '</s>'].map((content, index) => special(plain + index, content)),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: { type: 'BPE', vocab: Object.fromEntries(texts.map((text, id) => [text, id])), merges },
  };
  const config = { tokenizer_class: 'PreTrainedTokenizerFast', bos_token: '<s>', eos_token: '</s>' };
  writeFileSync(path.join(directory, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(path.join(directory, 'tokenizer_config.json'), JSON.stringify(config));
}
