import type { LarkCursor } from './lark-cursor.ts';

/** Computes the parameter of a called rule from the caller's. Parameters have 64 bits. */
export interface ParameterExpression {
  readonly isConstant: boolean;
  of(parameter: bigint): bigint;
}

export type Condition = (parameter: bigint) => boolean;

/** Bits `from` to `end` − 1 of a parameter. */
interface BitRange {
  readonly from: number;
  readonly end: number;
}

const ALL_ONES = BigInt.asUintN(64, -1n);

const COMPARISONS: Readonly<Record<string, (a: bigint, b: bigint) => boolean>> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
};

/** Takes what follows `::`: a number, `_` or a function such as `set_bit(3)`. */
export function takeParameter(cursor: LarkCursor): ParameterExpression {
  if (cursor.token?.kind === 'number') {
    const value = takeValue(cursor);
    return { isConstant: true, of: () => value };
  }
  if (cursor.takeSymbol('_')) return { isConstant: false, of: (parameter) => parameter };
  const name = takeFunction(cursor);
  const of = parameterFunction(name, cursor);
  cursor.expect(')');
  return { isConstant: false, of };
}

function parameterFunction(name: string, cursor: LarkCursor): (parameter: bigint) => bigint {
  if (name === 'set_bit' || name === 'clear_bit') {
    const bit = 1n << BigInt(takeBit(cursor, 63));
    return name === 'set_bit' ? (p) => p | bit : (p) => p & (ALL_ONES ^ bit);
  }
  if (name === 'bit_and' || name === 'bit_or') {
    const value = takeValue(cursor);
    return name === 'bit_and' ? (p) => p & value : (p) => p | value;
  }
  if (name === 'incr' || name === 'decr') {
    const range = takeRange(cursor);
    const unit = 1n << BigInt(range.from);
    const limit = name === 'incr' ? onesOf(range) : 0n;
    return (p) => (bitsOf(p, range) === limit ? p : name === 'incr' ? p + unit : p - unit);
  }
  throw cursor.error(`There is no parameter function "${name}"`);
}

/** Takes what follows `%if`. */
export function takeCondition(cursor: LarkCursor): Condition {
  if (cursor.token?.text === 'true' && cursor.takeKind('rule')) {
    if (cursor.takeSymbol('(')) cursor.expect(')');
    return () => true;
  }
  const name = takeFunction(cursor);
  const condition = conditionFunction(name, cursor);
  cursor.expect(')');
  return condition;
}

function conditionFunction(name: string, cursor: LarkCursor): Condition {
  if (name === 'not') {
    const condition = takeCondition(cursor);
    return (p) => !condition(p);
  }
  if (name === 'and' || name === 'or') {
    const first = takeCondition(cursor);
    cursor.expect(',');
    const second = takeCondition(cursor);
    return name === 'and' ? (p) => first(p) && second(p) : (p) => first(p) || second(p);
  }
  if (name === 'bit_set' || name === 'bit_clear') {
    const from = takeBit(cursor, 63);
    const expected = name === 'bit_set' ? 1n : 0n;
    return (p) => bitsOf(p, { from, end: from + 1 }) === expected;
  }
  const comparison = COMPARISONS[name.replace(/^bit_count_/, '')];
  if (comparison === undefined && name !== 'is_ones' && name !== 'is_zeros')
    throw cursor.error(`There is no condition "${name}"`);
  const range = takeRange(cursor);
  if (comparison === undefined) {
    const expected = name === 'is_ones' ? onesOf(range) : 0n;
    return (p) => bitsOf(p, range) === expected;
  }
  cursor.expect(',');
  const value = takeValue(cursor);
  if (!name.startsWith('bit_count_')) return (p) => comparison(bitsOf(p, range), value);
  return (p) => comparison(BigInt(bitsOf(p, range).toString(2).replaceAll('0', '').length), value);
}

function takeFunction(cursor: LarkCursor): string {
  const name = cursor.takeKind('rule');
  if (name === null) throw cursor.error('Expected a function of the parameter');
  cursor.expect('(');
  return name.text;
}

/** Takes `_` or `[from:end]`. */
function takeRange(cursor: LarkCursor): BitRange {
  if (cursor.takeSymbol('_')) return { from: 0, end: 64 };
  cursor.expect('[');
  const from = takeBit(cursor, 63);
  cursor.expect(':');
  const end = takeBit(cursor, 64);
  cursor.expect(']');
  if (end <= from) throw cursor.error('The end of a bit range must be above its start');
  return { from, end };
}

function takeBit(cursor: LarkCursor, max: number): number {
  const value = takeValue(cursor);
  if (value > max) throw cursor.error(`The number of a bit is at most ${max}`);
  return Number(value);
}

function takeValue(cursor: LarkCursor): bigint {
  const token = cursor.takeKind('number');
  if (token === null) throw cursor.error('Expected a number');
  if (BigInt(token.text) > ALL_ONES) throw cursor.error('A parameter has at most 64 bits');
  return BigInt(token.text);
}

function bitsOf(parameter: bigint, { from, end }: BitRange): bigint {
  return BigInt.asUintN(end - from, parameter >> BigInt(from));
}

function onesOf({ from, end }: BitRange): bigint {
  return BigInt.asUintN(end - from, -1n);
}
