import { choice, type Grammar, text } from './expression.ts';
import { GrammarError } from './grammar-error.ts';

/** Exactly one of the given texts. */
export function choiceGrammar(texts: readonly string[]): Grammar {
  texts.forEach((value, index) => {
    if (!value.isWellFormed()) throw new GrammarError(`Choice ${index} contains a lone surrogate`);
  });
  return { rules: [choice(texts.map(text))], root: 0 };
}
