import GithubSlugger from 'github-slugger';
import { lexer, type Token, type Tokens, walkTokens } from 'marked';

/** What the documentation tests look at in one Markdown page. Lines count from 1, by enclosing block. */
export interface Page {
  readonly sentences: readonly { readonly line: number; readonly text: string; readonly words: number }[];
  readonly links: readonly { readonly line: number; readonly target: string }[];
  /** Fragments that links to this page may use. */
  readonly anchors: ReadonlySet<string>;
  readonly blocks: readonly CodeBlock[];
}

export interface CodeBlock {
  readonly line: number;
  /** First word of the info string; '' if there is none. */
  readonly language: string;
  /** The other words of the info string. */
  readonly tags: readonly string[];
  readonly code: string;
}

const SENTENCE_END = /(?<=[.!?:;])\s+(?=[\p{Lu}`"([])/u;

export function readPage(markdown: string): Page {
  const page = { sentences: [], links: [], anchors: new Set<string>(), blocks: [] } as {
    sentences: { line: number; text: string; words: number }[];
    links: { line: number; target: string }[];
    anchors: Set<string>;
    blocks: CodeBlock[];
  };
  const slugger = new GithubSlugger();
  let line = 1;
  for (const block of lexer(markdown)) {
    const at = line;
    walkTokens([block], (token) => {
      if (token.type === 'heading')
        page.anchors.add(slugger.slug(plainText(token.tokens ?? [], (text) => text)));
      if (token.type === 'link' || token.type === 'image') page.links.push({ line: at, target: token.href });
      if (token.type === 'html')
        for (const [, id] of token.raw.matchAll(/\b(?:id|name)="([^"]+)"/g)) page.anchors.add(id!);
      if (token.type === 'code') page.blocks.push(codeBlock(token as Tokens.Code, at));
    });
    for (const text of paragraphs(block))
      for (const sentence of text.split(SENTENCE_END))
        page.sentences.push({ line: at, text: sentence, words: countWords(sentence) });
    line += block.raw.split('\n').length - 1;
  }
  return page;
}

const countWords = (text: string): number => text.match(/[\p{L}][\p{L}\p{N}'’-]*/gu)?.length ?? 0;

function codeBlock({ lang = '', text }: Tokens.Code, line: number): CodeBlock {
  const [language = '', ...tags] = lang.split(/\s+/);
  return { line, language, tags, code: text };
}

/** Prose of a block: paragraphs and list items, without tables, headings and code. */
function paragraphs(token: Token): string[] {
  if (token.type === 'list')
    return (token as Tokens.List).items.flatMap((item) => item.tokens.flatMap(paragraphs));
  if (token.type === 'blockquote') return (token as Tokens.Blockquote).tokens.flatMap(paragraphs);
  if (token.type !== 'paragraph' && token.type !== 'text') return [];
  return [plainText((token as Tokens.Paragraph).tokens, () => '`code`')];
}

function plainText(tokens: readonly Token[], showCode: (text: string) => string): string {
  const texts = tokens.map((token) => {
    if (token.type === 'codespan') return showCode((token as Tokens.Codespan).text);
    if (token.type === 'html' || token.type === 'image') return '';
    if ('tokens' in token && token.tokens) return plainText(token.tokens, showCode);
    return 'text' in token ? token.text : ' ';
  });
  return texts.join('');
}
