import { hash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import GithubSlugger from 'github-slugger';
import { lexer, Marked, type Token, type Tokens } from 'marked';
import { OVERVIEW, toGuide } from '../docs/routes.ts';

/** Renders docs/*.md for the page. */

export interface GuideSection {
  /** Fragment of its heading; '' for the text before the second heading. */
  readonly id: string;
  readonly title: string;
  /** Its text without markup, for the search. */
  readonly text: string;
}

/** A picture of a guide as a file of the page. */
export interface Picture {
  /** Names the content, because browsers keep it for ever. */
  readonly fileName: string;
  readonly content: Uint8Array;
  readonly width: number;
  readonly height: number;
}

export interface Guide {
  /** Path below docs without `.md`; a folder's README has the name of the folder. */
  readonly name: string;
  readonly title: string;
  readonly html: string;
  readonly sections: readonly GuideSection[];
}

export interface GuideGroup {
  readonly title: string;
  readonly guides: readonly { readonly name: string; readonly title: string; readonly summary: string }[];
}

const nameOf = (file: string): string => file.replace(/\.md$/, '').replace(/(^|\/)README$/, '');

/** Returns the address of a link in a guide; null if the page does not serve its target. */
function addressOf(href: string, file: string, names: ReadonlySet<string>): string | null {
  if (/^[a-z][a-z+.-]*:/i.test(href) || href.startsWith('#')) return href;
  const [place = '', fragment] = href.split('#');
  const target = nameOf(path.posix.join(path.posix.dirname(file), place));
  if (target === '' || target === '.') return OVERVIEW;
  return names.has(target) ? `${toGuide(target)}${fragment ? `#${fragment}` : ''}` : null;
}

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      if (token.type === 'html' || token.type === 'code') return '';
      if (token.type === 'table') {
        const { header, rows } = token as Tokens.Table;
        return [header, ...rows].flatMap((row) => row.map((cell) => plainText(cell.tokens))).join(' ');
      }
      if (token.type === 'list') return plainText((token as Tokens.List).items);
      if ('tokens' in token && token.tokens) return plainText(token.tokens);
      return 'text' in token ? token.text : ' ';
    })
    .join(' ')
    .replaceAll(/\s+/g, ' ');
}

function sectionsOf(markdown: string): GuideSection[] {
  const slugger = new GithubSlugger();
  const sections: { id: string; title: string; tokens: Token[] }[] = [];
  for (const token of lexer(markdown)) {
    if (token.type === 'heading') {
      const { text, depth } = token as Tokens.Heading;
      const title = text.replaceAll('`', '');
      sections.push({ id: depth === 1 ? '' : slugger.slug(title), title, tokens: [] });
      if (depth === 1) slugger.slug(title);
    } else sections.at(-1)?.tokens.push(token);
  }
  return sections.map(({ id, title, tokens }) => ({ id, title, text: plainText(tokens).trim() }));
}

/** Where a PNG file has its width and its height. */
const SIZE_AT = 16;

/** Reads the pictures of a documentation folder, by their path in it. */
export function readPictures(directory: string): ReadonlyMap<string, Picture> {
  return new Map(
    globSync('images/*.png', { cwd: directory }).map((file) => {
      const content = readFileSync(path.join(directory, file));
      const fileName = `assets/${path.basename(file, '.png')}-${hash('sha256', content).slice(0, 8)}.png`;
      const [width, height] = [content.readUInt32BE(SIZE_AT), content.readUInt32BE(SIZE_AT + 4)];
      return [file.replaceAll(path.sep, '/'), { fileName, content, width, height }];
    }),
  );
}

type Pictures = ReadonlyMap<string, Picture>;

function htmlOf(markdown: string, file: string, names: ReadonlySet<string>, pictures: Pictures): string {
  const slugger = new GithubSlugger();
  let heading = '';
  let tables = 0;
  // Scrollable blocks get the focus, so that they can be scrolled with the keyboard.
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        heading = text.replaceAll('`', '');
        const id = slugger.slug(heading);
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const address = addressOf(href, file, names);
        return address === null
          ? `<span class="file">${text}</span>`
          : `<a href="${escaped(address)}">${text}</a>`;
      },
      image({ href, text }) {
        const picture = pictures.get(path.posix.join(path.posix.dirname(file), href));
        if (picture === undefined) throw new Error(`docs/${file}: there is no picture ${href}`);
        const { fileName, width, height } = picture;
        return `<img src="/${fileName}" alt="${escaped(text)}" width="${width}" height="${height}" loading="lazy">`;
      },
      code: ({ text }) =>
        `<div class="code-block"><pre tabindex="0"><code>${escaped(text)}</code></pre><span></span></div>`,
      table({ header, rows }) {
        const row = (cells: Tokens.TableCell[]) =>
          `<tr>${cells.map((cell) => this.tablecell(cell)).join('')}</tr>`;
        const body = rows.map(row).join('');
        tables += 1;
        return `<div class="table" tabindex="0" role="region" aria-label="Table ${tables}: ${escaped(heading)}"><table><thead>${row(header)}</thead><tbody>${body}</tbody></table></div>`;
      },
    },
  });
  return marked.parse(markdown, { async: false });
}

/** Reads every page of a documentation folder except its README. */
export function readGuides(directory: string): Guide[] {
  const files = globSync('**/*.md', { cwd: directory })
    .map((file) => file.replaceAll(path.sep, '/'))
    .toSorted();
  const names = new Set(files.map(nameOf));
  const pictures = readPictures(directory);
  return files
    .filter((file) => nameOf(file) !== '')
    .map((file) => {
      const markdown = readFileSync(path.join(directory, file), 'utf8');
      const sections = sectionsOf(markdown);
      return {
        name: nameOf(file),
        title: sections[0]!.title,
        html: htmlOf(markdown, file, names, pictures),
        sections,
      };
    });
}

/** Reads the groups of guides from the folder's README: a heading with a list of links each. */
export function readGroups(directory: string): GuideGroup[] {
  const groups: { title: string; guides: { name: string; title: string; summary: string }[] }[] = [];
  for (const token of lexer(readFileSync(path.join(directory, 'README.md'), 'utf8'))) {
    if (token.type === 'heading' && token.depth === 2) groups.push({ title: token.text, guides: [] });
    if (token.type !== 'list') continue;
    for (const { text } of (token as Tokens.List).items) {
      const [, title = '', href = '', summary = ''] = /^\[([^\]]+)\]\(([^)]+)\):?\s*(.*)$/s.exec(text) ?? [];
      groups.at(-1)?.guides.push({ name: nameOf(href), title, summary: summary.replaceAll('`', '') });
    }
  }
  return groups;
}
