import { isMoney, limitName, limitUnit, microsOf, units } from '../formats.ts';
import { Field } from './fields.tsx';

/** Limits as the fields of a form have them: by name, in the unit of the field; '' = none. */
export type LimitTexts = Readonly<Record<string, string>>;

/** Returns the texts of the limits that are set. */
export const limitTexts = (limits: Readonly<Record<string, number | null>>): LimitTexts =>
  Object.fromEntries(
    Object.entries(limits)
      .filter((entry): entry is [string, number] => entry[1] !== null)
      .map(([name, limit]) => [name, String(isMoney(name) ? units(limit) : limit)]),
  );

/** @param text not empty */
const limitOf = (name: string, text: string): number => (isMoney(name) ? microsOf(text) : Number(text));

/** Returns the limits that differ from those before; an emptied one is `empty`. */
export const changedLimits = <T,>(
  texts: LimitTexts,
  before: LimitTexts,
  empty: T,
): Record<string, number | T> =>
  Object.fromEntries(
    Object.entries(texts)
      .filter(([name, text]) => text !== (before[name] ?? ''))
      .map(([name, text]) => [name, text === '' ? empty : limitOf(name, text)]),
  );

/** Returns the fields whose values differ from those before. */
export const changedFields = <T extends object>(next: T, before: T): Partial<T> =>
  Object.fromEntries(
    Object.entries(next).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof T]),
    ),
  ) as Partial<T>;

interface LimitFieldsProps {
  /** All limits that the server knows. */
  readonly names: readonly string[];
  readonly value: LimitTexts;
  readonly onInput: (name: string, text: string) => void;
  /** What an empty field means. */
  readonly emptyText: (name: string) => string;
}

/** Limits as fields with their units. */
export function LimitFields({ names, value: texts, onInput, emptyText }: LimitFieldsProps) {
  const set = Object.values(texts).filter((text) => text !== '').length;
  return (
    <details>
      <summary>
        Limits <span class="quiet">{set === 0 ? 'none of its own' : `${set} set`}</span>
      </summary>
      <div class="limit-fields">
        {names.map((name) => (
          <Field
            key={name}
            title={limitName(name)}
            hint={limitUnit(name)}
            type="number"
            inputMode="decimal"
            min={isMoney(name) ? 0.000001 : 1}
            step={isMoney(name) ? 'any' : 1}
            placeholder={emptyText(name)}
            value={texts[name] ?? ''}
            onInput={(text) => onInput(name, text)}
          />
        ))}
      </div>
    </details>
  );
}
