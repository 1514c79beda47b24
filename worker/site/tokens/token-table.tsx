import { useMemo } from 'preact/hooks';
import { hexBytes, tokenBytes } from '../api/token-bytes.ts';
import { Button } from '../controls/button.tsx';
import { type Column, DataTable, numberColumn } from '../controls/data-table.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { saveFile } from '../controls/save-file.ts';
import type { PlacedTokens } from './placed-tokens.ts';
import { decimal, percent } from './probability.ts';
import { TokenName } from './token-name.tsx';
import { type TokenRow, tokenRows, tokensCsv, tokensJson, withoutTokens } from './token-rows.ts';

const logprobOf = ({ token: { logprob } }: TokenRow) => logprob;

const COLUMNS: readonly Column<TokenRow>[] = [
  numberColumn('Index', ({ index }) => index),
  numberColumn('Id', ({ token: { id } }) => id, String),
  {
    title: 'Text',
    of: ({ token: { name } }) => name,
    show: ({ token: { name } }) => (
      <code>
        <TokenName name={name} whiteSpace />
      </code>
    ),
  },
  { title: 'Bytes', of: ({ token: { name } }) => hexBytes(tokenBytes(name)) || null },
  numberColumn('Logprob', logprobOf, (logprob) => decimal(logprob, 3)),
  numberColumn('Probability', logprobOf, percent),
  numberColumn('Rank', ({ rank }) => rank),
];

export interface TokenTableProps {
  readonly text: string;
  readonly placed: readonly PlacedTokens[];
  /** Computes the tokens of the whole text; null = not now. */
  readonly onScore: (() => void) | null;
  readonly onClose: () => void;
}

/** All tokens of a text, with files for other programs. */
export function TokenTable({ text, placed, onScore, onClose }: TokenTableProps) {
  const rows = useMemo(() => tokenRows(text, placed), [text, placed]);
  const missing = useMemo(() => withoutTokens(text, placed), [text, placed]);
  const save = (name: string, type: string, content: string) => saveFile(name, new Blob([content], { type }));
  return (
    <Dialog title="Tokens" class="wide" onClose={onClose}>
      <div class="stack">
        <p class="quiet" role="status">
          {rows.length.toLocaleString('en')} tokens.
          {missing > 0 && ` ${missing.toLocaleString('en')} typed characters have no tokens yet.`}
        </p>
        <DataTable caption="Tokens" columns={COLUMNS} rows={rows} />
        <div class="row">
          <Button
            text="Save CSV"
            disabled={rows.length === 0}
            onClick={() => save('tokens.csv', 'text/csv', tokensCsv(rows))}
          />
          <Button
            text="Save JSON"
            disabled={rows.length === 0}
            onClick={() => save('tokens.json', 'application/json', tokensJson(text, rows))}
          />
          {missing > 0 && (
            <Button text="Score text" disabled={onScore === null} onClick={() => onScore?.()} />
          )}
        </div>
      </div>
    </Dialog>
  );
}
