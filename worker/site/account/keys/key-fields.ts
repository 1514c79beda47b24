import type { OwnKey } from '../api-objects.ts';
import { type FormPart, limitFields, NAME, type Texts } from '../form/form-fields.ts';
import { amount } from '../formats.ts';

const PURPOSES = [
  ['completions,models', 'Completions and the list of models'],
  ['completions', 'Only completions'],
  ['models', 'Only the list of models'],
  ['keys', 'Managing keys'],
] as const;

/** The settings of a key. Its purpose stays as it was made. */
export const keyFields = ({ limits }: Pick<OwnKey, 'limits'>, isNew: boolean): readonly FormPart[] => [
  NAME,
  ...(isNew
    ? ([{ name: 'scopes', title: 'For', kind: 'words', options: PURPOSES, initial: PURPOSES[0][0] }] as const)
    : []),
  { name: 'expires_at', title: 'Ends', hint: 'UTC; empty = never', kind: 'time' },
  limitFields(Object.keys(limits), (limit) =>
    limits[limit] == null ? 'no limit' : `at most ${amount(limit, limits[limit])}`,
  ),
  {
    summary: 'Models, networks, metadata',
    fields: [
      { name: 'models', title: 'Models', hint: 'one per line; empty = all', kind: 'lines' },
      {
        name: 'allowed_addresses',
        title: 'Networks',
        hint: 'one per line, such as 203.0.113.0/24; empty = all',
        kind: 'lines',
      },
      { name: 'metadata', title: 'Metadata', hint: 'one pair per line: name: value', kind: 'pairs' },
    ],
  },
];

const UNITS = [
  ['60', 'minutes'],
  ['3600', 'hours'],
  ['86400', 'days'],
] as const;

/** For how long a key works beside the one that replaces it. */
export const overlapFields = ({ unit }: Texts): readonly FormPart[] => [
  {
    name: 'amount',
    title: 'Overlap',
    kind: 'number',
    initial: '24',
    input: { required: true, min: 0, max: 2_592_000 / Number(unit ?? 3_600) },
  },
  { name: 'unit', title: 'Unit of the overlap', kind: 'choice', options: UNITS, initial: '3600' },
];

export const overlapSeconds = ({ amount, unit }: Texts): number => Math.round(Number(amount) * Number(unit));
