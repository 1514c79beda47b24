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
  [
    'lines of their own and boundaries',
    'start: /a$\\n^b/m "," /c\\b-\\bd/ /(?i)e(?-i:f)/',
    ['a\nb,c-def', 'a\nb,c-dEf'],
    ['ab,c-def', 'a\nb,c-dEF'],
  ],
  ['look-around inside a terminal', 'start: /(?!ab)[a-c]{2}/ "b"', ['aab', 'bbb'], ['abb']],
  ['conjunction', 'start: A\nA: /[a-z]+/ & LONG | "1"\nLONG: /.{3}/', ['abc', '1'], ['ab', 'ABC', 'abcd']],
  [
    'conjunction of sequences',
    'start: A\nA: /[ab]/ /[bc]/\n  & "a"{1,2} /./? & ~"ac"',
    ['ab'],
    ['ac', 'bc', 'aa', 'a'],
  ],
  [
    'negation',
    'start: A "!"\nA: /[a-z]{1,3}/ & ~/.*b.*/',
    ['a!', 'acé!'.replace('é', 'd')],
    ['b!', 'ab!', '!'],
  ],
  ['negation before repetition', 'start: A\nA: ~/[^a]|../s+ & /[ab]*/', ['a', 'aa'], ['b']],
  [
    'substrings of words',
    'start: "<" %regex {"substring_words": "foo bar, foo baz"} ">"',
    ['<>', '<foo>', '<, foo baz>', '<bar, foo>'],
    ['<fo>', '<foo baz, >', '<bar baz>'],
  ],
  [
    'substrings of chunks that begin alike',
    'start: A\nA: %regex {"substring_chunks": ["ab", "abc", "c", "", "ab"]} "."',
    ['.', 'ab.', 'ababc.', 'abcc.', 'cab.', 'ababccab.', 'abcab.'.replace('abcab', 'abccab')],
    ['b.', 'abab.', 'ccab.'],
  ],
  [
    'substrings of characters',
    'start: %regex {"substring_chars": "aébé"}',
    ['', 'éb', 'ébé', 'aéb'],
    ['ab', 'éé'],
  ],
  ['a lazy rule', 'start: a "."\na[lazy]: /[ab]*b/', ['b.', 'aab.'], ['bb.', 'abab.', 'a.']],
  ['a lazy rule that may be empty', 'start: a "x"\na[lazy]: /[ax]*/', ['x'], ['ax', 'xx']],
  ['a suffix', 'start: a "."\na[suffix="</", capture]: /[^.]*/', ['x</.', '</.'], ['x</</.', 'x.']],
  [
    'a stop, which is not part of the text',
    'start: a "." a\na[stop=END, stop_capture="x"]: /[a-z]+/\nEND: /[xy]/ | "."',
    ['ab.c'],
    ['ax.c', '.c', 'a.'],
  ],
  [
    'a stop at the end of the text',
    'start: a "b"?\na[capture="c", stop=""]: /[ab]*/',
    ['', 'ab', 'abb'],
    ['c'],
  ],
  [
    'a lazy rule that excludes what would go on',
    `start: (f | g)* TEXT
f: head "=f(" /[0-9]+/ ")"
head[lazy]: TEXT "<call"
g: tool "=g>"
tool[lazy]: TEXT "<tool"
TEXT: /(.|\\n)*/`,
    ['a < b', 'x<call=f(1)y', 'x<tool=g><call=f(22)', ''],
    ['x<call', 'x<call=f(a)', 'x<tool<call=f(1)', 'x<call=f(1)<tool='],
  ],
  ['a lazy rule elsewhere excludes nothing', 'start: a "|" /.*/\na[lazy]: /[^|]*;/', ['x;|y;z'], ['x;y;|z']],
  [
    'a nested grammar with its own names and ignored text',
    '%ignore " "\nstart: "a" b A\nA: "c"\nb: %lark {\n  start: A+\n  A: /[{}]/\n  %ignore "_"\n}',
    ['a{}c', 'a {_} c', 'a _}__{ c'],
    ['ac', 'a{ }c', 'a_ {c_'],
  ],
  [
    'ignored text once',
    '%llguidance {"ignore_once": true}\n%ignore / {1,2}/\nstart: "a" "b"',
    ['ab', 'a  b'],
    ['a   b'],
  ],
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
  ['look-ahead beyond a terminal', 'start: /a(?=b)/ "b"', /The text around .* at line 1, column 10/],
  ['a line start before a terminal', 'start: "a" /^b/m', /The text around/],
  ['the flag l', 'start: /a/l', /The flag "l" is not supported at line 1, column 9/],
  ['an unknown inline flag', 'start: /(?x)a/', /The flag "x" is not supported/],
  [
    'an unknown option',
    '%llguidance {"no_such": true}\nstart: "a"',
    /The option "no_such" is not supported at line 1/,
  ],
  ['an option of another type', '%llguidance {"ignore_once": 1}\nstart: "a"', /must be true or false/],
  [
    'invalid UTF-8',
    '%llguidance {"allow_invalid_utf8": true}\nstart: "a"',
    /"allow_invalid_utf8" is not supported/,
  ],
  [
    'an unknown attribute',
    'start: a\na[foo]: "b"',
    /The attribute "foo" is not supported at line 2, column 3/,
  ],
  ['a limit of tokens', 'start: a\na[max_tokens=3]: /b+/', /The attribute "max_tokens" is not supported/],
  [
    'a temperature that is no number',
    'start: a\na[temperature="x"]: /b+/',
    /Expected a number at line 2, column 15/,
  ],
  ['a stop without a value', 'start: a\na[stop]: /b+/', /Expected a value for "stop"/],
  ['two ends', 'start: a\na[stop="c", suffix="d"]: /b+/', /one "stop" or "suffix"/],
  [
    'a lazy rule of rules',
    'start: a\na[lazy]: b\nb: "c"',
    /A terminal cannot contain rules at line 2, column 10/,
  ],
  ['"&" in a rule', 'start: "a" & "b"', /supported in terminals only at line 1, column 8/],
  ['"~" in a rule', 'start: ~"a"', /supported in terminals only at line 1, column 8/],
  [
    'a terminal of itself',
    'start: A\nA: "a" | B\nB: "b" A',
    /The terminal "A" refers to itself at line 2, column 1/,
  ],
  [
    'a schema in a terminal',
    'start: A\nA: %json {}',
    /%json cannot be a part of a terminal at line 2, column 4/,
  ],
  ['a token in a terminal', 'start: A\nA: <[1]>', /A token cannot be a part of a terminal/],
  ['an empty range of tokens', 'start: <[3-2]>', /Expected token ids/],
  ['no token but all', 'start: <[^*]>', /Expected token ids/],
  [
    'two fields of %regex',
    'start: %regex {"substring_words": "a", "substring_chars": "a"}',
    /exactly one field/,
  ],
  [
    'an unknown field of %regex',
    'start: %regex {"words": "a"}',
    /%regex has no field "words" at line 1, column 8/,
  ],
  ['a field of another type', 'start: %regex {"substring_words": 1}', /"substring_words" has the wrong type/],
  [
    'an error in a nested grammar',
    'start: %lark {\n  start: a\n}',
    /"a" is used but not defined at line 2, column 10/,
  ],
  ['a rule with a parameter', 'start: a\na::_: "b"', /Rules with a parameter are not supported/],
  ['a call with a parameter', 'start: a::1\na: "b"', /Rules with a parameter are not supported/],
  ['a condition', 'start: "a" %if true', /Rules with a parameter are not supported/],
  ['negative counts', 'start: "a"{0,-1}', /Expected a number/],
  ['an escape without digits', 'start: "\\xZZ"', /The escape "\\x" needs hexadecimal digits/],
  ['unclosed group', 'start: ("a"', /Expected "\)"/],
  ['unclosed string', 'start: "a', /Unexpected character at line 1, column 8/],
  ['rule in a terminal', 'start: A\nA: b\nb: "x"', /cannot contain rules/],
  ['endless recursion', 'start: "a" start', /No text can match/],
];
