import { csvText } from '@continuo/shared/csv.ts';
import type { PromptToken } from '../api/completion-stream.ts';
import { isPartial, tokenBytes } from '../api/token-bytes.ts';
import type { PlacedTokens } from './placed-tokens.ts';
import { probabilityOf } from './probability.ts';

/** The tokens of a text as a list, for a table and for files. */

export interface TokenRow {
  /** From 0, of the tokens that are listed. */
  readonly index: number;
  /** Start of its character in the text, in code points. */
  readonly offset: number;
  readonly token: PromptToken;
  /** 1 = the most likely token; null = not known. */
  readonly rank: number | null;
}

/**
 * Returns the place of a token among the most likely ones. The last of the list may be there only because it
 * was chosen, so that its rank is not known.
 */
export function rankOf({ name, alternatives }: PromptToken): number | null {
  const place = alternatives.findIndex((alternative) => alternative.name === name);
  return place >= 0 && place < alternatives.length - 1 ? place + 1 : null;
}

/** Returns a row for each token, in the order of the text. */
export function tokenRows(text: string, placed: readonly PlacedTokens[]): readonly TokenRow[] {
  const rows: TokenRow[] = [];
  let [units, offset] = [0, 0];
  for (const { from, tokens } of placed) {
    offset += pointsOf(text.slice(units, from));
    units = from;
    for (const token of tokens) rows.push({ index: rows.length, offset, token, rank: rankOf(token) });
  }
  return rows;
}

const pointsOf = (text: string): number => {
  let points = 0;
  for (const _ of text) points += 1;
  return points;
};

/** Returns how many characters of a text have no tokens, because they were typed. */
export const withoutTokens = (text: string, placed: readonly PlacedTokens[]): number =>
  pointsOf(text) - placed.reduce((sum, { from, to }) => sum + pointsOf(text.slice(from, to)), 0);

/** Returns bytes as `\xe2\x82`, which no spreadsheet takes for a number. */
const escaped = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');

const fieldsOf = ({ index, offset, token: { name, id, logprob }, rank }: TokenRow) => ({
  index,
  text_offset: offset,
  id,
  /** Null for a part of a character, which only its bytes tell. */
  text: isPartial(name) ? null : name,
  logprob,
  probability: logprob === null ? null : probabilityOf(logprob),
  rank,
});

export const tokensJson = (text: string, rows: readonly TokenRow[]): string =>
  JSON.stringify(
    {
      format: 'continuo-tokens',
      version: 1,
      text,
      tokens: rows.map((row) => ({ ...fieldsOf(row), bytes: Array.from(tokenBytes(row.token.name)) })),
    },
    null,
    1,
  );

const COLUMNS = ['index', 'text_offset', 'id', 'text', 'bytes', 'logprob', 'probability', 'rank'];

export const tokensCsv = (rows: readonly TokenRow[]): string =>
  csvText(
    COLUMNS,
    rows.map((row) => ({ ...fieldsOf(row), bytes: escaped(tokenBytes(row.token.name)) })),
  );
