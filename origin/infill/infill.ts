import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import { FAMILIES } from './families.ts';
import type { InfillSetting, InfillTemplate } from './template.ts';

/** A template bound to one vocabulary. */
export interface Infill {
  readonly layout: InfillTemplate['layout'];
  readonly markers: Readonly<Record<'prefix' | 'suffix' | 'middle', number | null>>;
  /** Markers and end tokens. Each of them ends an infill. */
  readonly endTokenIds: readonly number[];
  /** Markers for the files of a repository; null if the vocabulary lacks them. */
  readonly repository: Readonly<Record<'name' | 'file', number>> | null;
}

/**
 * Returns the template of a model, or null if it has none.
 * @throws Error if the configured template names a token that the vocabulary lacks
 */
export function findInfill(tokenizer: Tokenizer, setting: InfillSetting): Infill | null {
  if (setting === 'off') return null;
  if (setting !== 'auto') {
    const bound = bind(tokenizer, setting);
    if (!bound) throw new Error('the infill template names a token that the vocabulary does not have');
    return bound;
  }
  const has = (text: string) => tokenizer.idOf(text) !== undefined;
  const fitting = FAMILIES.filter(({ requires = [] }) => requires.every(has));
  return fitting.map(({ template }) => bind(tokenizer, template)).find((bound) => bound !== null) ?? null;
}

function bind(tokenizer: Tokenizer, template: InfillTemplate): Infill | null {
  const texts = [template.prefix, template.suffix, template.middle].filter((text) => text !== null);
  const ids = texts.map((text) => tokenizer.idOf(text));
  const [prefix, suffix, middle] = ids;
  if (prefix === undefined || suffix === undefined || ids.includes(undefined)) return null;
  const ends = template.stops.flatMap((text) => tokenizer.idOf(text) ?? []);
  return {
    layout: template.layout,
    markers: { prefix, suffix, middle: middle ?? null },
    endTokenIds: [...new Set([...(ids as number[]), ...ends])],
    repository: bindRepository(tokenizer, template.repository),
  };
}

function bindRepository(tokenizer: Tokenizer, names: InfillTemplate['repository']): Infill['repository'] {
  const name = tokenizer.idOf(names?.name ?? '');
  const file = tokenizer.idOf(names?.file ?? '');
  return name === undefined || file === undefined ? null : { name, file };
}

interface InfillParts {
  /** Tokens that the tokenizer puts before a text (BOS), or none. */
  readonly start: readonly number[];
  /** Other files, with their markers. */
  readonly files: readonly number[];
  /** The text before the gap. */
  readonly before: ArrayLike<number>;
  /** The text after the gap. */
  readonly after: ArrayLike<number>;
  /** The start of the text to generate. */
  readonly middle: ArrayLike<number>;
}

/** Returns the prompt's ids in the template's order. */
export function assemble({ layout, markers }: Infill, parts: InfillParts): number[] {
  const texts = { P: Array.from(parts.before), S: Array.from(parts.after) };
  const ids = layout.flatMap((part) => {
    if (part === 'P' || part === 'S') return texts[part];
    return markers[part] ?? [];
  });
  return [...parts.start, ...parts.files, ...ids, ...Array.from(parts.middle)];
}

/**
 * Cuts P and S so that the assembled prompt has at most `budget` tokens. The end of P and the start of S
 * stay, 3 : 1; what one of them does not need goes to the other.
 */
export function cutToFit(infill: Infill, parts: InfillParts, budget: number): InfillParts {
  const fixed = assemble(infill, { ...parts, before: [], after: [] }).length;
  const room = Math.max(0, budget - fixed);
  const { length: before } = parts.before;
  const { length: after } = parts.after;
  if (before + after <= room) return parts;
  const keptAfter = Math.min(after, Math.max(Math.floor(room / 4), room - before));
  const keptBefore = Math.min(before, room - keptAfter);
  return {
    ...parts,
    before: Array.from(parts.before).slice(before - keptBefore),
    after: Array.from(parts.after).slice(0, keptAfter),
  };
}
