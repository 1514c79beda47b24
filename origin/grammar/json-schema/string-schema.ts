import type { Dfa } from '../automaton/dfa.ts';
import { type Expression, NOTHING, repeat } from '../expression.ts';
import type { Own } from './demands.ts';
import { escapedExpression } from './escaped-string.ts';
import { countFacts, textFacts } from './facts.ts';
import { type JsonText, stringCharacter } from './json-text.ts';
import type { StringLanguages } from './string-language.ts';

/** Strings of the given lengths, patterns and formats. Without a pattern or format any JSON spelling may be used. */
export function stringExpression(own: Own, json: JsonText, languages: StringLanguages): Expression {
  const { min, max } = countFacts(own, 'minLength', 'maxLength');
  if (min > max) return NOTHING;
  const language = textFacts(own, languages);
  if (language === null) {
    return min === 0 && max === Number.POSITIVE_INFINITY
      ? json.string
      : json.stringOf(repeat(stringCharacter(), min, max));
  }
  return json.stringOf(escapedExpression(withLengths(language, min, max, languages)));
}

/** The language of string values, for questions about it; null = every string. */
export function stringLanguage(own: Own, languages: StringLanguages): Dfa | null {
  const { min, max } = countFacts(own, 'minLength', 'maxLength');
  const language = textFacts(own, languages);
  if (language !== null) return withLengths(language, min, max, languages);
  return min === 0 && max === Number.POSITIVE_INFINITY ? null : languages.length(min, max);
}

function withLengths(language: Dfa, min: number, max: number, languages: StringLanguages): Dfa {
  if (min === 0 && max === Number.POSITIVE_INFINITY) return language;
  return languages.both(language, languages.length(min, max));
}
