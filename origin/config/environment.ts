import { closestMatch } from 'leven';
import * as z from 'zod';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Parses environment variables. Empty ones count as absent, because shells and compose files leave them so.
 * @throws Error one line: the variable, the value received (never a secret) and what is allowed
 */
export function parseVariables<S extends z.ZodObject>(schema: S, environment: Environment): z.infer<S> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  const name = String(issue.path[0]);
  const allowed = allowedBy(schema.shape[name] as z.ZodType) ?? issue.message;
  throw new Error(`${name}: ${received(name, given[name])}${allowed}`);
}

const MAX_SHOWN = 80;

function received(name: string, value: string | undefined): string {
  if (value === undefined) return 'must be set: ';
  if (/SECRET|KEY/.test(name)) return `received ${value.length} characters; `;
  return `received ${JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value)}; `;
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
  if (rule.type === 'number') return `a number from ${rule.minimum} to ${rule.maximum}`;
  if (rule.type === 'boolean') return 'true or false';
  if (rule.type !== 'string' || rule.minLength === undefined) return null;
  const most = rule.maxLength === undefined ? '' : ` and at most ${rule.maxLength}`;
  return `at least ${rule.minLength} characters${most}`;
}

/** Variables of other programs that may be set where the origin starts. */
const LAUNCHER_VARIABLES = ['CONTINUO_DEVICES', 'CONTINUO_HOST', 'CONTINUO_PORT', 'CONTINUO_STATE_DIR'];
const LOCAL_WORKER_VARIABLES = [
  'CONTINUO_ORIGINS',
  'CONTINUO_PAGE_LINK',
  'CONTINUO_WORKER_STATE',
  'CONTINUO_WORKER_VARS',
];
const COMMAND_LINE_VARIABLES = ['CONTINUO_URL', 'CONTINUO_API_KEY', 'CONTINUO_ADMIN_KEY'];
const OTHER_VARIABLES = [...LAUNCHER_VARIABLES, ...LOCAL_WORKER_VARIABLES, ...COMMAND_LINE_VARIABLES];

/** @throws Error naming the first CONTINUO_ variable that does not exist, and the nearest one that does */
export function requireKnown(environment: Environment, variables: readonly string[]): void {
  const existing = [...variables, ...OTHER_VARIABLES];
  const ours = Object.keys(environment).filter((name) => name.startsWith('CONTINUO_'));
  const unknown = ours.find((name) => !existing.includes(name));
  if (unknown === undefined) return;
  const nearest = closestMatch(unknown, existing);
  throw new Error(`${unknown}: there is no such variable; the nearest name is ${nearest}`);
}
