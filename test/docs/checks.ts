import path from 'node:path';
import type { CodeBlock, Page } from './markdown.ts';

/** Faults of a page, one line each. */

const MAX_WORDS = 30;

export const longSentences = ({ sentences }: Page): string[] =>
  sentences
    .filter(({ words }) => words > MAX_WORDS)
    .map(
      ({ line, text, words }) =>
        `line ${line}: a sentence has ${words} words, ${MAX_WORDS} are allowed: ${text}`,
    );

/** A page, 'file' for any other file or folder, or null if there is nothing at the path. */
export type Find = (file: string) => Page | 'file' | null;

/** Relative links to files or anchors that do not exist. `file` is the page's path from the root. */
export function deadLinks(file: string, { links }: Page, find: Find): string[] {
  return links.flatMap(({ line, target }) => {
    if (/^[a-z][a-z+.-]*:/i.test(target)) return [];
    const [place = '', anchor] = decodeURI(target).split('#');
    const path_ = place === '' ? file : path.posix.join(path.posix.dirname(file), place);
    const found = find(path_);
    if (found === null) return [`line ${line}: ${target}: there is no ${path_}`];
    if (anchor === undefined || found === 'file' || found.anchors.has(anchor)) return [];
    return [`line ${line}: ${target}: ${path_} has no heading #${anchor}`];
  });
}

/** Languages that nothing can run. */
const PLAIN = ['text', 'mermaid'];
/** `output` is what a command prints, `config` a file, `manual` what needs an account or hardware. */
const UNRUN = ['output', 'config', 'manual'];

/** Code blocks that are neither run by a test nor marked as something that is not run. */
export const unmarkedBlocks = ({ blocks }: Page, runnable: readonly string[]): string[] =>
  blocks.flatMap((block) => {
    const fault = blockFault(block, runnable);
    return fault === null ? [] : [`line ${block.line}: ${fault}`];
  });

function blockFault({ language, tags }: CodeBlock, runnable: readonly string[]): string | null {
  if (PLAIN.includes(language)) return tags.length === 0 ? null : `'${language}' takes no tag`;
  const [tag, ...others] = tags;
  if (tag === undefined || others.length > 0)
    return `'${language}' needs one tag: run=ID, ${UNRUN.join(', ')}; plain text is '${PLAIN[0]}'`;
  if (UNRUN.includes(tag)) return null;
  if (!/^run=[a-z0-9-]+$/.test(tag)) return `unknown tag '${tag}'`;
  return runnable.includes(language) ? null : `no test runs '${language}'; it runs ${runnable.join(', ')}`;
}
