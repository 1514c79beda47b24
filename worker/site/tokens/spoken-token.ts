import { hexBytes, isPartial, tokenBytes } from '../api/token-bytes.ts';
import { percent } from './probability.ts';
import { IS_UNSEEN, signOf, splitUnseen } from './white-space.ts';

const NAMES: Readonly<Record<string, string>> = {
  ' ': 'space',
  '\t': 'tab',
  '\n': 'line break',
  '\u00a0': 'no-break space',
};

const nameOf = (part: string): string => (IS_UNSEEN.test(part) ? (NAMES[part] ?? signOf(part)) : part);

/** Returns a token as a screen reader says it: a space before a word is silent, any other is named. */
export function spoken({
  name,
  logprob,
}: {
  readonly name: string;
  readonly logprob: number | null;
}): string {
  const text = isPartial(name)
    ? `bytes ${hexBytes(tokenBytes(name))}`
    : splitUnseen(/^ \S/.test(name) ? name.slice(1) : name)
        .filter((part) => part !== '')
        .map(nameOf)
        .join(' ');
  return logprob === null ? text : `${text}, ${percent(logprob)}`;
}
