import * as z from 'zod';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the variables that are set. Empty ones count as absent, because shells and compose files leave them so. */
const setVariables = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));

/**
 * Parses environment variables.
 * @throws Error one line: the variable, the value received (never a secret) and what is allowed
 */
export function parseVariables<S extends z.ZodObject>(schema: S, environment: Environment): z.infer<S> {
  const given = setVariables(environment);
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  const name = String(issue.path[0]);
  const value = given[name];
  const allowed = allowedBy(schema.shape[name] as z.ZodType) ?? issue.message;
  if (value === undefined) throw new Error(`${name}: must be set: ${allowed}`);
  throw new Error(`${name}: received ${shown(name, value)}; ${allowed}`);
}

const MAX_SHOWN = 80;

function shown(name: string, value: string): string {
  if (/SECRET|KEY/.test(name)) return `${value.length} characters`;
  return JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value);
}

/** Describes what a schema accepts; null if JSON Schema cannot express it. */
function allowedBy(schema: z.ZodType): string | null {
  const rule = describeRule(z.toJSONSchema(schema, { unrepresentable: 'any' }));
  return rule === null ? null : `expected ${rule}`;
}

function describeRule(rule: z.core.JSONSchema._JSONSchema): string | null {
  if (typeof rule === 'boolean') return null;
  if (rule.anyOf !== undefined) {
    const rules = rule.anyOf.map(describeRule);
    return rules.includes(null) ? null : rules.join(' or ');
  }
  if (rule.const !== undefined) return String(rule.const);
  if (rule.enum !== undefined) return `one of ${rule.enum.join(', ')}`;
  if (rule.type === 'integer') return `a whole number from ${rule.minimum} to ${rule.maximum}`;
  if (rule.type === 'boolean') return 'true or false';
  if (rule.type !== 'string') return null;
  const most = rule.maxLength === undefined ? '' : ` and at most ${rule.maxLength}`;
  return `at least ${rule.minLength} characters${most}`;
}

/** Variables of the launcher, its children, the command line and the tests. They may be set where the origin starts. */
const OTHER_VARIABLES = [
  ...['CONTINUO_HOST', 'CONTINUO_PORT', 'CONTINUO_STATE_DIR', 'CONTINUO_URL', 'CONTINUO_ADMIN_KEY'],
  ...[
    'CONTINUO_API_KEY',
    'CONTINUO_KEY',
    'CONTINUO_ORIGIN_URL',
    'CONTINUO_WORKER_STATE',
    'CONTINUO_WORKER_VARS',
  ],
  ...['CONTINUO_CLIENTS_PYTHON', 'CONTINUO_COMPILE_LIMIT_MS', 'CONTINUO_GENERATIONS'],
  ...['CONTINUO_HOSTILE', 'CONTINUO_KILLS', 'CONTINUO_TEST_SECRET'],
  ...['CONTINUO_CHROMIUM', 'CONTINUO_SCREENSHOTS'],
];

const REMOVED = new Set([
  ...['CONTINUO_FORCED_TOKENS', 'CONTINUO_CACHE_GENERATED'],
  ...['CONTINUO_SPECULATION', 'CONTINUO_SPECULATION_ROWS'],
]);

/** @throws Error one line that names the first CONTINUO_ variable that does not exist, and the nearest one that does */
export function requireKnown(environment: Environment, own: readonly string[]): void {
  const known = [...own, ...OTHER_VARIABLES];
  const unknown = Object.keys(environment).find(
    (name) => name.startsWith('CONTINUO_') && !known.includes(name),
  );
  if (unknown === undefined) return;
  if (REMOVED.has(unknown)) throw new Error(`${unknown}: this variable was removed; unset it`);
  const nearest = known.toSorted((a, b) => editDistance(unknown, a) - editDistance(unknown, b))[0]!;
  throw new Error(`${unknown}: there is no such variable; the nearest name is ${nearest}`);
}

/** Levenshtein distance. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (let at = 0; at < other.length; at += 1) {
      const replaced = row[at]! + (other[at] === letter ? 0 : 1);
      next.push(Math.min(replaced, row[at + 1]! + 1, next[at]! + 1));
    }
    row = next;
  }
  return row.at(-1)!;
}
