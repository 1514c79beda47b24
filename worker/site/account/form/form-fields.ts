import { RequestFailure } from '../../api/request-failure.ts';
import { isMoney, limitName, limitUnit, units } from '../formats.ts';
import { lines, pairLines, pairs } from './pairs.ts';

/** The fields of a form as data: how they look, and how their texts become the bodies of requests. */

/** What the fields have, by name; '' = empty. */
export type Texts = Readonly<Record<string, string>>;

type Json = Readonly<Record<string, unknown>>;

export type InputType = 'date' | 'datetime-local' | 'number' | 'search';

interface FieldKind {
  readonly control: 'input' | 'lines' | 'choice' | 'flag';
  readonly type?: InputType;
  /** Returns the text of a value, which is neither null nor undefined. */
  readonly read: (value: unknown) => string;
  /** Returns the value of a text. @param before the text that the record had */
  readonly write: (text: string, before: string) => unknown;
  /** Whether `write` also takes an empty text. */
  readonly takesEmpty?: boolean;
}

const TEXT = { control: 'input', read: String, write: (text: string) => text } as const;
const NUMBER = { control: 'input', type: 'number', read: String, write: Number } as const;
const LINES = {
  control: 'lines',
  read: (value: unknown) => (value as string[]).join('\n'),
  write: lines,
} as const;

/** Reads an amount whose last decimal place is the server's unit. It rounds nothing: a price would differ. */
const withPlaces = (places: number) => (text: string) => {
  const amount = Number(text);
  if (Number(amount.toFixed(places)) === amount) return Math.round(amount * 10 ** places);
  throw new RequestFailure('invalid-request', `${text} has more than ${places} decimal places.`);
};

const KINDS = {
  text: TEXT,
  search: { ...TEXT, type: 'search' },
  date: { ...TEXT, type: 'date' },
  choice: { ...TEXT, control: 'choice' },
  /** A choice of several words, which commas separate. */
  words: { ...TEXT, control: 'choice', write: (text) => text.split(',') },
  flag: {
    control: 'flag',
    read: (value) => (value === true ? 'true' : ''),
    write: (text) => text === 'true',
    takesEmpty: true,
  },
  number: NUMBER,
  /** Units of the currency; micro-units on the server. */
  money: { ...NUMBER, read: (micros) => String(units(Number(micros))), write: withPlaces(6) },
  /** Thousandths on the server. */
  percent: { ...NUMBER, read: (permille) => String(Number(permille) / 10), write: withPlaces(1) },
  /** UTC; Unix seconds on the server. */
  time: {
    ...TEXT,
    type: 'datetime-local',
    read: (seconds) => new Date(Number(seconds) * 1000).toISOString().slice(0, 16),
    write: (text) => Date.parse(`${text}Z`) / 1000,
  },
  lines: LINES,
  pairs: { ...LINES, read: (value) => pairLines(value as Record<string, string>), write: pairs },
  /** Pairs of which a change sends only those that differ; null removes one. */
  changedPairs: {
    ...LINES,
    read: (value) => pairLines(value as Record<string, string>),
    write(text, before) {
      const [next, last] = [text, before].map((each) => new Map(Object.entries(pairs(each) ?? {})));
      const names = [...new Set([...last!.keys(), ...next!.keys()])];
      const changed = names.filter((name) => next!.get(name) !== last!.get(name));
      return Object.fromEntries(changed.map((name) => [name, next!.get(name) ?? null]));
    },
    takesEmpty: true,
  },
  json: {
    control: 'lines',
    read: (value) => JSON.stringify(value, null, 2),
    write(text) {
      try {
        return JSON.parse(text) as unknown;
      } catch (thrown) {
        throw new RequestFailure('invalid-request', `The settings are not JSON: ${String(thrown)}`);
      }
    },
  },
} as const satisfies Readonly<Record<string, FieldKind>>;

export const kindOf = ({ kind = 'text' }: FormField): FieldKind => KINDS[kind];

export interface FormField {
  /** In the bodies of the server. `limits.tokens_per_day` lies in the object `limits`. */
  readonly name: string;
  readonly title: string;
  /** Unit, and what an empty field means. */
  readonly hint?: string;
  readonly kind?: keyof typeof KINDS;
  /** Text for a new record. */
  readonly initial?: string;
  /** What a field is changed to that is emptied. Default: null. */
  readonly whenEmptied?: string;
  /** Values with their shown names. */
  readonly options?: readonly (readonly [value: string, name: string])[];
  /** Texts that are offered. */
  readonly suggested?: readonly string[];
  /** Attributes of the control. */
  readonly input?: InputAttributes;
}

export interface InputAttributes {
  readonly required?: boolean;
  readonly min?: number;
  readonly max?: number;
  readonly step?: number | 'any';
  readonly inputMode?: 'decimal';
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly placeholder?: string;
  readonly dir?: 'auto';
  readonly autocomplete?: 'off';
  readonly spellcheck?: boolean;
  readonly rows?: number;
  /** Whether it takes the room beside others. */
  readonly grows?: boolean;
}

/** Fields that are shown when they are wanted. */
export interface FoldedFields {
  readonly summary: string;
  readonly fields: readonly FormField[];
  /** Whether the summary says how many are set. */
  readonly isCounted?: boolean;
}

export type FormPart = FormField | FoldedFields;

const fieldsOf = (parts: readonly FormPart[]): readonly FormField[] =>
  parts.flatMap((part) => ('fields' in part ? part.fields : [part]));

/** Returns the texts of the fields of a record; null = a new one. */
export function textsOf(parts: readonly FormPart[], record: object | null): Texts {
  const texts = fieldsOf(parts).map((field) => {
    if (record === null) return [field.name, field.initial ?? ''];
    const value = field.name.split('.').reduce<unknown>((object, name) => (object as Json)[name], record);
    return [field.name, value == null ? '' : kindOf(field).read(value)];
  });
  return Object.fromEntries(texts);
}

/** Returns a body of what the fields change; of a new record, of what they have. */
export function bodyOf(parts: readonly FormPart[], texts: Texts, record: object | null): Json {
  const before = record === null ? {} : textsOf(parts, record);
  const body: Record<string, unknown> = {};
  for (const field of fieldsOf(parts)) {
    const [text, last] = [texts[field.name] ?? '', before[field.name] ?? ''];
    if (text === last) continue;
    const { write, takesEmpty } = kindOf(field);
    const value = text === '' && !takesEmpty ? (field.whenEmptied ?? null) : write(text, last);
    const [group, name] = field.name.split('.') as [string, string?];
    body[group] = name === undefined ? value : { ...(body[group] as Json), [name]: value };
  }
  return body;
}

/** The name of a record for people. */
export const NAME: FormField = {
  name: 'name',
  title: 'Name',
  input: { required: true, maxLength: 200, dir: 'auto' },
};

/** The least amount and the least weight. */
export const LEAST = 0.000001;

/** Returns the limits as fields with their units. @param emptyText what an empty field means */
export const limitFields = (
  names: readonly string[],
  emptyText: (name: string) => string,
  whenEmptied?: string,
): FoldedFields => ({
  summary: 'Limits',
  isCounted: true,
  fields: names.map((name) => ({
    name: `limits.${name}`,
    title: limitName(name),
    hint: limitUnit(name),
    kind: isMoney(name) ? 'money' : 'number',
    ...(whenEmptied !== undefined && { whenEmptied }),
    input: { ...(isMoney(name) ? { min: LEAST } : { min: 1, step: 1 }), placeholder: emptyText(name) },
  })),
});
