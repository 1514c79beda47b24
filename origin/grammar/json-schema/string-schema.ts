import { type Dfa, isEmptyLanguage } from '../automaton/dfa.ts';
import { wholeMatchExpression } from '../regex/regex-automaton.ts';
import { parseRegex } from '../regex/regex-parser.ts';
import { type Expression, NOTHING, repeat } from '../rules/expression.ts';
import { countRange, enumeratedValues, typesOf } from './assertions.ts';
import { type Conjunction, conjunctionOf, type KeywordNodes } from './conjunction.ts';
import { type Alternatives, branchesOf, type Expanded, expand } from './expansion.ts';
import { uriWithin } from './formats.ts';
import { stringCharacter } from './json-rules.ts';
import { holdsJson } from './keywords.ts';
import type { SchemaContext, ValidationContext } from './schema-context.ts';
import type { StringLanguages } from './string-language.ts';

/** Longer URIs are too much work to count as a whole; the shortest URI has 3 characters. */
const MAX_COUNTED_URI = 300;
const SHORTEST_URI = 3;

/**
 * Strings that satisfy lengths, patterns and formats. Without pattern and format, any JSON spelling is
 * allowed.
 */
export function stringExpression(nodes: KeywordNodes, context: SchemaContext): Expression {
  const { json, languages, budget } = context;
  const { min, max } = countRange(nodes, 'minLength', 'maxLength');
  if (min > max) return NOTHING;
  const [holder, ...others] = nodes.filter(({ schema }) => holdsJson(schema));
  if (holder !== undefined) {
    if (stringLanguage(nodes, languages) === null)
      return context.textOf(contentSchemas([holder, ...others], context), holder.path);
    context.document.ignore(`contentMediaType=${holder.schema.contentMediaType}`);
  }
  const isUri = nodes.every(
    ({ schema: { format = 'uri', pattern } }) => format === 'uri' && pattern === undefined,
  );
  const isFormat = nodes.some(({ schema }) => schema.format !== undefined);
  if (isFormat && isUri && Number.isFinite(max) && max > MAX_COUNTED_URI && min <= SHORTEST_URI) {
    return json.stringOf(wholeMatchExpression(parseRegex(uriWithin(max), budget), budget));
  }
  const language = patternAndFormat(nodes, languages);
  if (language === null) {
    return min === 0 && max === Number.POSITIVE_INFINITY
      ? json.string
      : json.stringOf(repeat(stringCharacter(), min, max));
  }
  return context.stringIn(languages.withLengths(language, min, max));
}

/** The language of string values; null if every string is allowed. */
export function stringLanguage(nodes: KeywordNodes, languages: StringLanguages): Dfa | null {
  const { min, max } = countRange(nodes, 'minLength', 'maxLength');
  const language = patternAndFormat(nodes, languages);
  if (language !== null) return languages.withLengths(language, min, max);
  return min === 0 && max === Number.POSITIVE_INFINITY ? null : languages.length(min, max);
}

/**
 * The language that `pattern`, `format` and `contentEncoding` allow, regardless of length; null if neither is
 * used. Beside a pattern that it contradicts, a format is an annotation.
 */
function patternAndFormat(nodes: KeywordNodes, languages: StringLanguages): Dfa | null {
  const { max } = countRange(nodes, 'minLength', 'maxLength');
  return nodes
    .map(({ schema: { pattern, format, contentEncoding }, path }) => {
      const formatted = both(
        format === undefined ? null : languages.format(format, `${path}/format`, max),
        contentEncoding === undefined ? null : languages.encoding(contentEncoding, `${path}/contentEncoding`),
        languages,
      );
      if (pattern === undefined) return formatted;
      const matching = languages.pattern(pattern, `${path}/pattern`, max);
      if (languages.isWide) return matching;
      const formattedMatch = both(matching, formatted, languages)!;
      return isEmptyLanguage(formattedMatch) ? matching : formattedMatch;
    })
    .reduce((a, b) => both(a, b, languages), null);
}

/** The texts of both languages; null stands for all texts. */
export const both = (a: Dfa | null, b: Dfa | null, languages: StringLanguages): Dfa | null =>
  a === null || b === null ? (a ?? b) : languages.both(a, b);

/** The schemas of the JSON that a string holds. */
export function contentSchemas(nodes: KeywordNodes, { document }: ValidationContext): Conjunction {
  const holders = nodes.filter(({ schema }) => holdsJson(schema) && schema.contentSchema !== undefined);
  return conjunctionOf(...holders.map((node) => document.child(node, 'contentSchema')));
}

/** The strings that satisfy a conjunction; null if all do. Exact, except for formats. */
export function languageOf(conjunction: Conjunction, context: ValidationContext): Dfa | null {
  const expanded = expand(conjunction, context.document);
  if (expanded.impossible) return context.languages.anyOf([]);
  return [
    keywordLanguage(expanded, context),
    ...expanded.alternatives.map((choice) => choiceLanguage(choice, context)),
  ].reduce((a, b) => both(a, b, context.languages));
}

function keywordLanguage({ nodes }: Expanded, context: ValidationContext): Dfa | null {
  const isTyped = nodes.some(({ schema }) => schema.type !== undefined);
  if (isTyped && !typesOf(nodes).has('string')) return context.languages.anyOf([]);
  const texts = enumeratedValues(nodes)?.filter((value) => typeof value === 'string');
  const listed = texts === undefined ? null : context.languages.anyOf(texts);
  return both(listed, stringLanguage(nodes, context.languages), context.languages);
}

function choiceLanguage(choice: Alternatives, context: ValidationContext): Dfa | null {
  if (choice.part === 'not') return not(languageOf(conjunctionOf(choice.node), context.opposite), context);
  // A string has no properties.
  if (choice.part.startsWith('dependency')) return null;
  const only: Expanded = { impossible: false, nodes: [], alternatives: [choice] };
  const branches = branchesOf(only, choice, context.document);
  const excluded =
    choice.part === 'oneOf' ? branches.map((rival) => languageOf(rival, context.opposite)) : [];
  const alone = branches.map((branch, i) =>
    excluded
      .filter((_, j) => i !== j)
      .map((rival) => not(rival, context))
      .reduce((rest, rival) => both(rest, rival, context.languages), languageOf(branch, context)),
  );
  const none = alone
    .map((branch) => not(branch, context))
    .reduce<Dfa | null>((a, b) => both(a, b, context.languages), null);
  return not(none, context);
}

function not(language: Dfa | null, { languages }: ValidationContext): Dfa {
  return language === null ? languages.anyOf([]) : languages.not(language);
}
