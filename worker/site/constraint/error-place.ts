import { jsonLanguage } from '@codemirror/lang-json';

/** Finds the place that an error message of the server names. */

export interface ErrorPlace {
  /** UTF-16 positions in the source. */
  readonly from: number;
  readonly to: number;
}

const LINE_AND_COLUMN = /at line (\d+), column (\d+)/;
const POINTER = /#((?:\/[^:\s]*)?):/;

/** Returns the place in the source; the whole source if the message names none. */
export function errorPlace(source: string, message: string): ErrorPlace {
  const place = LINE_AND_COLUMN.exec(message);
  if (place) return placeAt(source, Number(place[1]), Number(place[2]));
  const pointer = POINTER.exec(message)?.[1];
  return (pointer === undefined ? null : pointerPlace(source, pointer)) ?? { from: 0, to: source.length };
}

/** Returns the word at a line and a column, which count from 1. */
function placeAt(source: string, line: number, column: number): ErrorPlace {
  const before = source.split('\n').slice(0, line - 1);
  const start = before.reduce((sum, { length }) => sum + length + 1, 0) + column - 1;
  const from = Math.max(0, Math.min(start, source.length - 1));
  const word = /^[\w-]+/.exec(source.slice(from))?.[0].length ?? 1;
  return { from, to: Math.min(source.length, from + word) };
}

/** Returns the place of the value that a JSON pointer names; null if the source has no such value. */
export function pointerPlace(source: string, pointer: string): ErrorPlace | null {
  const steps = pointer
    .split('/')
    .slice(1)
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'));
  let node = jsonLanguage.parser.parse(source).topNode.firstChild;
  for (const step of steps) {
    const values = [];
    for (let child = node?.firstChild ?? null; child; child = child.nextSibling) {
      if (node?.name === 'Object') {
        const name = child.getChild('PropertyName');
        if (name && nameOf(source.slice(name.from, name.to)) === step) values.push(child.lastChild);
      } else if (!/^[[\],⚠]$/.test(child.name)) values.push(child);
    }
    node = (node?.name === 'Object' ? values[0] : values[Number(step)]) ?? null;
  }
  return node && { from: node.from, to: node.to };
}

function nameOf(written: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    return null;
  }
}
