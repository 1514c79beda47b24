/** A Lark grammar with matching and other texts. */
export interface LarkCase {
  readonly name: string;
  readonly source: string;
  readonly valid: readonly string[];
  readonly invalid: readonly string[];
}

type Row = readonly [name: string, source: string, valid: readonly string[], invalid: readonly string[]];

const ROWS: readonly Row[] = [
  ['a string', 'start: "abc"', ['abc'], ['ab', 'abcd', '']],
  ['alternatives over lines', 'start: "a"\n     | "b"\n     // comment\n     | "c"', ['a', 'b', 'c'], ['d']],
  ['quantifiers', 'start: "a"* "b"+ "c"?', ['b', 'aabbc'], ['a', 'c']],
  ['counts', 'start: "a"~2 "b"~1..3', ['aab', 'aabbb'], ['ab', 'aabbbb']],
  [
    'counts in braces',
    'start: "a"{2} b{1,3} ["-"]{,1} C{1,} ("d" "e"){0,2}\nb: "b"\nC: "c"{1 , 2}',
    ['aabc', 'aabbb-ccccdede'],
    ['abc', 'aabbbbc', 'aab', 'aabcdedede', 'aab--c'],
  ],
  ['dashes in names', 'start: the-a B-1->x\nthe-a: "a"\nB-1: "b"', ['ab'], ['a', 'b']],
  ['optional group', 'start: "a" ["b" "c"] "d"', ['ad', 'abcd'], ['abd']],
  [
    'rules and terminals',
    'start: item+\nitem: NAME "=" NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/',
    ['a=1', 'a=1b=22'],
    ['a=', '=1'],
  ],
  ['aliases', '?start: x -> top\n!x: "a" -> first\n  | "b" -> second', ['a', 'b'], ['c']],
  ['priorities', 'start.2: A | B\nA.1: "a"\nB.-1: "b"', ['a', 'b'], ['c']],
  ['ranges', 'start: "a".."f" D\nD: "0".."9"', ['a0', 'f9'], ['g0', '0a']],
  ['strings in either case', 'start: "select"i', ['select', 'SeLeCt'], ['selec']],
  ['regex flags', 'start: /ab+/i /./s', ['aBb\n', 'ABx'], ['b']],
  ['a negated class in either case', 'start: /[^a-c]+/i', ['dD', 'é'], ['a', 'B']],
  [
    'either case beyond ASCII',
    'start: "éß"i /[^à-ü]д[𐐀-𐐂]\\S[a-\u1fff]/i',
    ['ÉßxД𐐨ÉÅ', 'éßÿд𐐀ék'],
    ['éßÀд𐐀éa', 'éßxд𐐃éa', 'éßxж𐐀éa', 'éßxд𐐀 a', 'éßxд𐐀é1'],
  ],
  ['escapes in strings', 'start: "\\n" "\\"" "\\\\" "\\u00e9" "\\x41"', ['\n"\\éA'], ['n']],
  [
    'terminals of terminals',
    'start: WORD\nWORD: LETTER (LETTER | DIGIT)*\nLETTER: "a".."z"\nDIGIT: "0".."9"',
    ['a', 'a1b2'],
    ['1a'],
  ],
  ['left recursion', 'start: start "+" N | N\nN: /[0-9]/', ['1', '1+2+3'], ['+', '1+']],
  ['right recursion', 'start: N "^" start | N\nN: /[0-9]/', ['1', '1^2^3'], ['1^']],
  ['ignored spaces', '%ignore " "\nstart: "a" "b"', ['ab', 'a b', ' a  b '], ['a', 'ba']],
  [
    'ignored white space and comments',
    '%import common.WS\n%ignore WS\n%ignore /#[^\\n]*/\nstart: ("a" ";")+',
    ['a;', ' a ; # note\n a;'],
    ['a', 'a #'],
  ],
  ['nothing is ignored inside terminals', '%ignore " "\nstart: AB\nAB: "a" "b"', ['ab', ' ab '], ['a b']],
  [
    'imported numbers',
    '%import common.SIGNED_NUMBER\nstart: SIGNED_NUMBER',
    ['1', '-1.5e3', '+.5', '2.'],
    ['-', 'e1'],
  ],
  [
    'imported names and strings',
    '%import common (CNAME, ESCAPED_STRING)\nstart: CNAME "=" ESCAPED_STRING',
    ['a_1="x\\"y"'],
    ['1a="x"', 'a="x'],
  ],
  ['import under another name', '%import common.INT -> NUM\nstart: NUM', ['12'], ['a']],
  [
    'calculator',
    `?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: atom | product "*" atom -> mul | product "/" atom -> div
?atom: NUMBER -> number | "-" atom -> neg | "(" sum ")"
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE`,
    ['1 + 2*(3 - 4)', '-1', '--2/3'],
    ['1 +', '(1', ''],
  ],
  [
    'JSON',
    `?start: value
?value: object | array | string | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS`,
    ['{"a": [1, 2.5, null]}', '[]', ' "x" '],
    ['{a:1}', '[1,]'],
  ],
  [
    'SQL',
    `start: "SELECT" columns "FROM" NAME ["WHERE" cond] ";"
columns: NAME ("," NAME)* | "*"
cond: NAME OP (NAME | INT)
OP: "=" | "<" | ">" | "<=" | ">="
%import common.CNAME -> NAME
%import common.INT
%import common.WS
%ignore WS`,
    ['SELECT a, b FROM t WHERE a <= 3;', 'SELECT*FROM t;'],
    ['SELECT FROM t;', 'SELECT a FROM t'],
  ],
  [
    'a schema inside',
    'start: "call " %json {"type": "object", "properties": {"x": {"type": "integer", "maximum": 9.5}}, "required": ["x"]} "!"',
    ['call {"x":9}!'],
    ['call {}!', 'call {"x":10}!'],
  ],
  ['a flag for lines without anchors', 'start: /a.b/m', ['axb'], ['a\nb']],
  ['options of llguidance', '%llguidance {"allow_initial_skip": true}\nstart: "a"', ['a'], ['b']],
  ['comment at the end', 'start: "a" // the end', ['a'], ['b']],
  ['comments of both kinds', '# top\nstart: "#" "a" # rest\n', ['#a'], ['a']],
];

export const LARK_CASES: readonly LarkCase[] = ROWS.map(([name, source, valid, invalid]) => ({
  name,
  source,
  valid,
  invalid,
}));

/** Invalid grammars, and what the message must name. */
export const LARK_FAULTS: readonly (readonly [name: string, source: string, message: RegExp])[] = [
  ['no start', 'a: "x"', /no rule named "start"/],
  ['undefined rule', 'start: a', /"a" is used but not defined at line 1, column 8/],
  ['defined twice', 'start: "a"\nstart: "b"', /"start" is defined twice at line 2, column 1/],
  ['templates', 'start: x{"a"}\nx{y}: y', /Templates are not supported/],
  ['declared terminals', 'start: A\n%declare A', /%declare is not supported/],
  ['other libraries', '%import python.NAME\nstart: NAME', /Only the library "common"/],
  ['unknown terminal', '%import common.NOPE\nstart: NOPE', /No such terminal/],
  ['special tokens', 'start: <|end|> "a"', /Special tokens|Unexpected character/],
  ['look-ahead', 'start: /a(?=b)/', /Look-around is not supported/],
  ['lines of their own for anchors', 'start: /a$\\n^b/m', /flag "m" is not supported/],
  [
    'ignored text once',
    '%llguidance {"skip_repetition": "once"}\nstart: "a"',
    /"skip_repetition" is not supported/,
  ],
  ['unclosed group', 'start: ("a"', /Expected "\)"/],
  ['unclosed string', 'start: "a', /Unexpected character at line 1, column 8/],
  ['rule in a terminal', 'start: A\nA: b\nb: "x"', /cannot contain rules/],
  ['endless recursion', 'start: "a" start', /No text can match/],
];
