import type { Dfa } from '../automaton/dfa.ts';
import { enumeratedValues, typesOf } from './assertions.ts';
import { type Conjunction, conjunctionOf } from './conjunction.ts';
import { type Alternatives, branchesOf, type Expanded, expand } from './expansion.ts';
import type { ValidationContext } from './schema-context.ts';
import { both, stringLanguage } from './string-schema.ts';

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
