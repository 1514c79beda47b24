import { expect, inject, test } from 'vitest';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { randomText } from '../../support/grammar/random-walk.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';
import { runScript } from './python.ts';

const python = inject('python');

test.skipIf(python === null)(
  'the schemas of Pydantic’s types compile, and Pydantic parses the texts',
  async () => {
    const script = <T>(more: Record<string, string>) =>
      runScript<T>(python as string, 'pydantic_schemas.py', inject('served'), more);
    const { plain, schemas } = await script<{ plain: number; schemas: unknown[][] }>({});
    const tokens = smallVocabulary();
    const vocabulary = new GrammarVocabulary(tokens);
    const grammars = schemas.map((modes) =>
      modes.map((value) => compileConstraint({ type: 'json_schema', value }, vocabulary)),
    );
    const options = { tokens, random: randomFrom(5), patience: 10, limit: 400 };
    const texts = grammars.slice(0, plain).map(([validation]) => randomText(validation!.start(), options));
    expect(texts.filter((text) => text !== null).length).toBeGreaterThan(80);
    expect(await script({ TEST_TEXTS: JSON.stringify(texts) })).toEqual([]);
  },
);
