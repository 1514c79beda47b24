import { type CodePoints, complementCodePoints, intersectCodePoints } from '../automaton/code-points.ts';
import { codePointsByTarget, type Dfa } from '../automaton/dfa.ts';
import { chars, choice, EMPTY, type Expression, type GraphEdge, text } from '../expression.ts';

const SHORT_ESCAPES: ReadonlyMap<number, string> = new Map([
  [0x08, '\\b'],
  [0x09, '\\t'],
  [0x0a, '\\n'],
  [0x0c, '\\f'],
  [0x0d, '\\r'],
  [0x22, '\\"'],
  [0x5c, '\\\\'],
]);
const ESCAPED: CodePoints = [0, 0x1f, 0x22, 0x22, 0x5c, 0x5c];
/** Characters that may stand in a JSON string without an escape. */
export const UNESCAPED_CHARACTERS = complementCodePoints(ESCAPED);

/**
 * A language of string values as JSON text without quotes. Each character has one spelling and is escaped only if JSON
 * requires it.
 */
export function escapedExpression(language: Dfa): Expression {
  const edges: GraphEdge[] = [];
  const final = language.edges.length;
  language.edges.forEach((list, from) => {
    for (const [to, set] of codePointsByTarget(list)) edges.push({ from, to, label: escapedCharacter(set) });
    if (language.final[from] === 1) edges.push({ from, to: final, label: EMPTY });
  });
  return { kind: 'graph', states: final + 1, edges, final };
}

function escapedCharacter(set: CodePoints): Expression {
  const spellings: Expression[] = [chars(intersectCodePoints(set, UNESCAPED_CHARACTERS))];
  const escaped = intersectCodePoints(set, ESCAPED);
  for (let i = 0; i < escaped.length; i += 2) {
    for (let c = escaped[i]!; c <= escaped[i + 1]!; c++) {
      spellings.push(text(SHORT_ESCAPES.get(c) ?? `\\u${c.toString(16).padStart(4, '0')}`));
    }
  }
  return choice(spellings);
}
