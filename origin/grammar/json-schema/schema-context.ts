import type { Expression } from '../expression.ts';
import type { WorkBudget } from '../work-budget.ts';
import type { Conjunction } from './conjunction.ts';
import type { JsonRules } from './json-rules.ts';
import type { SchemaDocument } from './schema-document.ts';
import type { StringLanguages } from './string-language.ts';

/** State shared by the parts of the schema compiler. */
export interface SchemaContext {
  readonly document: SchemaDocument;
  readonly json: JsonRules;
  readonly languages: StringLanguages;
  readonly budget: WorkBudget;
  /** Returns the rule for the values of a conjunction. */
  ruleFor(conjunction: Conjunction): Expression;
}
