/**
 * Reads the part of YAML the manifests keep to: block mappings and sequences, one-line flow sequences of scalars, quoted
 * and plain scalars, comments. Whatever else YAML has, and every plain scalar that readers of YAML 1.1 and 1.2 take
 * differently, is an error, so that what is read here is what every tool reads.
 */

export type Yaml = string | number | boolean | null | Yaml[] | { [key: string]: Yaml };

interface Line {
  readonly number: number;
  readonly indent: number;
  readonly text: string;
}

const KEY = /^([A-Za-z_][\w./-]*):(?: +(.*))?$/;
/** Words that are booleans to some readers and numbers that are octal, sexagesimal or dates to others. */
const AMBIGUOUS = /^(?:y|n|yes|no|on|off|~|\.\w+|[-+]?0[0-9xo].*|[-+]?\d[\d_]*:\d.*|\d{4}-\d\d.*)$/i;
const PLAIN = /^[A-Za-z0-9/.@+-][^#,[\]{}&*!|>'"%`]*$/;

/** Without escapes, so that both kinds of quotes mean the same. */
const QUOTED = /^(?:'[^']*'|"[^"\\]*")$/;

/** @throws Error naming the line */
export function readPlainYaml(text: string): Yaml {
  const lines = text
    .split('\n')
    .map((raw, index) => ({ raw: withoutComment(raw), number: index + 1 }))
    .filter(({ raw }) => raw.trim() !== '')
    .map(({ raw, number }) => ({ number, indent: raw.search(/\S/), text: raw.trim() }));
  const reader = new Reader(lines);
  const value = reader.block(0);
  reader.requireEnd();
  return value;
}

class Reader {
  readonly #lines: Line[];
  #at = 0;

  constructor(lines: readonly Line[]) {
    this.#lines = [...lines];
  }

  block(indent: number): Yaml {
    const line = this.#lines[this.#at];
    if (line === undefined || line.indent !== indent) throw fault(line, 'indentation');
    return isItem(line) ? this.#sequence(indent) : this.#mapping(indent);
  }

  requireEnd(): void {
    if (this.#at < this.#lines.length) throw fault(this.#lines[this.#at], 'indentation');
  }

  #sequence(indent: number): Yaml[] {
    const items: Yaml[] = [];
    for (let line = this.#here(indent); line !== undefined && isItem(line); line = this.#here(indent)) {
      const rest = line.text.slice(2);
      if (!KEY.test(rest)) {
        items.push(scalarOrFlow(rest, line));
        this.#at += 1;
        continue;
      }
      // "- key: …" opens a mapping two columns further in.
      this.#lines[this.#at] = { ...line, indent: indent + 2, text: rest };
      items.push(this.#mapping(indent + 2));
    }
    return items;
  }

  #mapping(indent: number): Yaml {
    const entries = new Map<string, Yaml>();
    for (let line = this.#here(indent); line !== undefined && !isItem(line); line = this.#here(indent)) {
      const [, key, rest] = KEY.exec(line.text) ?? [];
      if (key === undefined) throw fault(line, 'not "key: value"');
      if (entries.has(key)) throw fault(line, `${key} is given twice`);
      this.#at += 1;
      entries.set(key, rest === undefined ? this.#nested(line) : scalarOrFlow(rest, line));
    }
    return Object.fromEntries(entries);
  }

  #nested(parent: Line): Yaml {
    const next = this.#lines[this.#at];
    if (next === undefined || next.indent !== parent.indent + 2)
      throw fault(parent, 'two columns further in');
    return this.block(next.indent);
  }

  #here(indent: number): Line | undefined {
    const line = this.#lines[this.#at];
    return line?.indent === indent ? line : undefined;
  }
}

const isItem = ({ text }: Line): boolean => text.startsWith('- ');

function scalarOrFlow(text: string, line: Line): Yaml {
  if (!text.startsWith('[')) return scalar(text, line);
  if (!/^\[[^[\]]+\]$/.test(text)) throw fault(line, 'not a flow sequence of scalars');
  return text
    .slice(1, -1)
    .split(',')
    .map((item) => scalar(item.trim(), line));
}

function scalar(text: string, line: Line): Yaml {
  if (QUOTED.test(text)) return text.slice(1, -1);
  if (text === 'true' || text === 'false') return text === 'true';
  if (/^-?(?:0|[1-9]\d*)$/.test(text)) return Number(text);
  if (AMBIGUOUS.test(text) || !Number.isNaN(Number(text)) || !PLAIN.test(text) || /:(?:\s|$)/.test(text)) {
    throw fault(line, `quote ${text}`);
  }
  if (/^null$/i.test(text) || /^(?:true|false)$/i.test(text)) throw fault(line, `quote ${text}`);
  return text;
}

/** A comment starts a line or follows a space, outside quotes. */
function withoutComment(raw: string): string {
  if (/\t/.test(raw)) throw new Error('a tab');
  let quote: string | null = null;
  for (const [at, character] of [...raw].entries()) {
    if (quote !== null) quote = character === quote ? null : quote;
    else if (character === "'" || character === '"') quote = character;
    else if (character === '#' && (at === 0 || raw[at - 1] === ' ')) return raw.slice(0, at);
  }
  return raw;
}

const fault = (line: Line | undefined, what: string): Error =>
  new Error(`line ${line?.number ?? 'end'}: ${what}`);
