const YEAR = '[0-9]{4}';
const LEAP_YEAR = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)';
const DATE =
  `(?:${YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])` +
  `|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|${LEAP_YEAR}-02-29)`;
const HOUR = '(?:[01][0-9]|2[0-3])';
const SIXTY = '[0-5][0-9]';
const TIME = `${HOUR}:${SIXTY}:${SIXTY}(?:\\.[0-9]{1,9})?(?:Z|[+-]${HOUR}:${SIXTY})`;

/** RFC 3339, appendix A: units follow each other without gaps. */
const COUNT = '[0-9]{1,9}';
const DAYS = `${COUNT}D`;
const MONTHS = `${COUNT}M(?:${DAYS})?`;
const SECONDS = `${COUNT}S`;
const MINUTES = `${COUNT}M(?:${SECONDS})?`;
const SPAN = `T(?:${COUNT}H(?:${MINUTES})?|${MINUTES}|${SECONDS})`;
const DURATION = `P(?:(?:${COUNT}Y(?:${MONTHS})?|${MONTHS}|${DAYS})(?:${SPAN})?|${SPAN}|${COUNT}W)`;

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?';
/**
 * Labels of at most `length` characters, at least 5, or any number. None has hyphens at its third and fourth
 * place: these are reserved for A-labels (`xn--…`), whose rest would have to be valid Punycode (RFC 5891).
 */
const hostLabel = (length = Number.POSITIVE_INFINITY): string =>
  '(?:[A-Za-z0-9](?:[A-Za-z0-9-]?[A-Za-z0-9])?|[A-Za-z0-9][A-Za-z0-9-]{2}[A-Za-z0-9]' +
  `|[A-Za-z0-9][A-Za-z0-9-](?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])[A-Za-z0-9-]{0,${Number.isFinite(length) ? length - 5 : ''}}[A-Za-z0-9])`;
/**
 * Host names of at most 253 characters: four labels of any length, eight of which the first has any length,
 * and more short ones. To count the characters of a label and of all labels together is too much work.
 */
const HOSTNAME = [
  `(?:${hostLabel(63)}\\.){0,3}${hostLabel(61)}`,
  `(?:${hostLabel(63)}\\.)?(?:${hostLabel(26)}\\.){0,6}${hostLabel(26)}`,
  `(?:${hostLabel(14)}\\.){0,15}${hostLabel(14)}`,
  `(?:${hostLabel(5)}\\.){0,41}${hostLabel(5)}`,
].join('|');
/** How zod writes it. Its exact automaton would be too large, and the format has no other texts. */
export const HOSTNAME_PATTERN =
  '^(?=.{1,253}\\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$';

const LONGEST_LABEL = 63;
const hostnameWithin = (length: number): string =>
  `(?=[^]{1,${length}}$)(?:${hostLabel()}\\.)*${hostLabel()}`;

const email = (lengths: string): string => `(?=${lengths}$)${ATOM}(?:\\.${ATOM})*@(?:${LABEL}\\.)+${LABEL}`;
/** At most 64 characters before the "@", as RFC 5321 says, and 64 after it, so that no label exceeds 63. */
const MAX_PART = 64;
const EMAIL = email(`[^@]{1,${MAX_PART}}@[^@]{1,${MAX_PART}}`);
/** No part can be too long. */
const SHORT_EMAIL = MAX_PART + 2;

function emailWithin(length: number): string {
  if (length <= SHORT_EMAIL) return email(`[^]{1,${length}}`);
  const local = Math.min(MAX_PART, Math.floor((length - 1) / 2));
  return email(`[^@]{1,${local}}@[^@]{1,${Math.min(MAX_PART, length - 1 - local)}}`);
}

/**
 * Texts of a format that have at most `length` characters; undefined if its automaton can be combined with
 * any length. Long texts are left out: to count the characters of each part and of the whole is too much
 * work.
 */
export function formatWithin(name: string, length: number): string | undefined {
  if (name.endsWith('email') && length > 0 && length <= 2 * MAX_PART) return emailWithin(length);
  if (name.endsWith('hostname') && length > 0 && length < 253)
    return hostnameWithin(Math.min(length, LONGEST_LABEL));
  return undefined;
}

const OCTET = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `${OCTET}(?:\\.${OCTET}){3}`;
const IPV4_PREFIX = '(?:3[0-2]|[12]?[0-9])';
const IPV6_PREFIX = '(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])';
const GROUP = '[0-9A-Fa-f]{1,4}';

/** Eight groups of 16 bits. `::` replaces zero groups once. The last two groups may be an IPv4 address. */
function ipv6(): string {
  const last32 = `(?:${GROUP}:${GROUP}|${IPV4})`;
  const forms = [`(?:${GROUP}:){6}${last32}`];
  // `::` precedes a fixed number of groups; the groups before it leave out at least one.
  for (let after = 5; after >= 0; after--) {
    const before = 5 - after;
    const left = before === 0 ? '' : `(?:(?:${GROUP}:){0,${before - 1}}${GROUP})?`;
    forms.push(`${left}::(?:${GROUP}:){${after}}${last32}`);
  }
  forms.push(`(?:(?:${GROUP}:){0,5}${GROUP})?::${GROUP}`, `(?:(?:${GROUP}:){0,6}${GROUP})?::`);
  return forms.join('|');
}

const PERCENT = '%[0-9A-Fa-f]{2}';
const UNRESERVED = "A-Za-z0-9._~!$&'()*+,;=\\-";
const SEGMENT = `(?:[${UNRESERVED}:@]|${PERCENT})`;
const AUTHORITY = `(?:(?:[${UNRESERVED}:]|${PERCENT})*@)?(?:[${UNRESERVED}]|${PERCENT})+(?::[0-9]{1,5})?`;
/** The paths of files have no host. */
const URI =
  `(?:[A-Za-z][A-Za-z0-9+.-]*:(?://${AUTHORITY}(?:/${SEGMENT}*)*|${SEGMENT}+(?:/${SEGMENT}*)*)|file://(?:/${SEGMENT}+)+)` +
  `(?:\\?(?:${SEGMENT}|[/?])*)?(?:#(?:${SEGMENT}|[/?])*)?`;

/** What every validator takes for a URL. */
const WEB_URL =
  `(?:https?|ftp)://(?:[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\\.)+[A-Za-z]{2,}(?::[0-9]{2,5})?` +
  `(?:/(?:${SEGMENT}|/)*(?:\\?(?:${SEGMENT}|[/?])*)?(?:#(?:${SEGMENT}|[/?])*)?)?`;

/** RFC 3986. A first segment with a colon would be a scheme. */
const NO_SCHEME = `(?:[${UNRESERVED}@]|${PERCENT})+`;
const RELATIVE =
  `(?://${AUTHORITY}(?:/${SEGMENT}*)*|/(?:${SEGMENT}+(?:/${SEGMENT}*)*)?|${NO_SCHEME}(?:/${SEGMENT}*)*)?` +
  `(?:\\?(?:${SEGMENT}|[/?])*)?(?:#(?:${SEGMENT}|[/?])*)?`;
const URI_REFERENCE = `(?:${URI}|${RELATIVE})`;

/** RFC 4648. Encoders set the bits of the last character without data to 0, and decoders may demand it. */
const BASE64 = '(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?';
const BASE64_URL =
  '(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw](?:==)?|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=?)?';
const BASE32 =
  '(?:[A-Z2-7]{8})*(?:[A-Z2-7][AEIMQUY4]={6}|[A-Z2-7]{3}[AQ]={4}|[A-Z2-7]{4}[ACEGIKMOQSUWY246]={3}|[A-Z2-7]{6}[AIQY]=)?';
const JSON_POINTER = '(?:/(?:[^~/]|~[01])*)*';
const SEMVER_ID = '(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)';
const NUMBER = '(?:0|[1-9][0-9]*)';
const SEMVER =
  `${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-${SEMVER_ID}(?:\\.${SEMVER_ID})*)?` +
  '(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?';

/** RFC 6570. */
const VARIABLE = '(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\\*|:[1-9][0-9]{0,3})?';
const URI_TEMPLATE = `(?:[${UNRESERVED.replace("'", '')}:@/?#\\[\\]]|${PERCENT}|\\{[+#./;?&]?${VARIABLE}(?:,${VARIABLE})*\\})*`;

const SCHEME_LENGTH = 16;
const PORT_LENGTH = 6;

/**
 * URIs of at most `length` characters; expects more than 100. Each part has its own share, so that the
 * automaton need not count all parts together. User information is excluded. A part with escapes has a third
 * of its share.
 */
export function uriWithin(length: number): string {
  const host = Math.min(253, Math.floor(length / 4));
  // Characters left for path, query and fragment, counted in escapes.
  const room = Math.floor((length - SCHEME_LENGTH - host - PORT_LENGTH - 5) / 3);
  const query = Math.floor(0.35 * room);
  const fragment = Math.floor(0.15 * room);
  const part = (allowed: string, escapes: number): string => {
    const plain = `[${UNRESERVED}${allowed}]`;
    return `(?:${plain}{0,${3 * escapes}}|(?:${plain}|${PERCENT}){0,${escapes}})`;
  };
  const path = part(':@/', room - query - fragment - 1);
  return (
    `[A-Za-z][A-Za-z0-9+.-]{0,${SCHEME_LENGTH - 1}}:` +
    `(?://[${UNRESERVED}]{1,${host}}(?::[0-9]{1,5})?(?:/${path})?|${SEGMENT}${path})` +
    `(?:\\?${part(':@/?', query)})?(?:#${part(':@/?', fragment)})?`
  );
}

const HEX = '[0-9A-Fa-f]';
const uuid = (version: string, variant: string): string =>
  `${HEX}{8}-${HEX}{4}-${version}${HEX}{3}-${variant}${HEX}{3}-${HEX}{12}`;

/** Formats of the purpose or size of a value, not its text: OpenAPI's, and Pydantic's for paths. */
export const ANNOTATION_FORMATS: ReadonlySet<string> = new Set([
  'password',
  'binary',
  'path',
  'file-path',
  'directory-path',
  ...['int32', 'int64', 'float', 'double'],
]);

/**
 * The formats as regular expressions for whole strings. Sources: RFC 3339 without leap seconds; RFC 5321
 * dot-strings at host names; RFC 1123; RFC 4122 (Pydantic's by version); RFC 4291; RFC 3986 with host names
 * or IPv4 addresses.
 */
export const FORMATS: ReadonlyMap<string, string> = new Map([
  ['date', DATE],
  ['time', TIME],
  ['date-time', `${DATE}T${TIME}`],
  ['duration', DURATION],
  ['email', EMAIL],
  ['uuid', uuid(HEX, HEX)],
  ...['1', '3', '4', '5', '6', '7', '8'].map(
    (version) => [`uuid${version}`, uuid(version, '[89ABab]')] as const,
  ),
  ['hostname', HOSTNAME],
  ['ipv4', IPV4],
  ['ipv6', ipv6()],
  // Pydantic's.
  ['ipv4interface', `${IPV4}(?:/${IPV4_PREFIX})?`],
  ['ipv6interface', `(?:${ipv6()})(?:/${IPV6_PREFIX})?`],
  ['ipvanyaddress', `${IPV4}|${ipv6()}`],
  ['ipvanyinterface', `${IPV4}(?:/${IPV4_PREFIX})?|(?:${ipv6()})(?:/${IPV6_PREFIX})?`],
  ['uri', URI],
  ['url', WEB_URL],
  ['uri-reference', URI_REFERENCE],
  // ASCII texts of the narrower format are valid in the wider one, too.
  ['iri', URI],
  ['iri-reference', URI_REFERENCE],
  ['idn-hostname', HOSTNAME],
  ['idn-email', EMAIL],
  ['uri-template', URI_TEMPLATE],
  ['json-pointer', JSON_POINTER],
  ['relative-json-pointer', `${NUMBER}(?:#|${JSON_POINTER})`],
  // Plain words, with the quantifiers and the classes that every dialect reads in the same way.
  ['regex', '\\^?(?:(?:[A-Za-z0-9 _,:;@=<>/-]|\\\\[dwsDWS.])[*+?]?)*\\$?'],
  ['byte', BASE64],
  ['base64', BASE64],
  ['base64url', BASE64_URL],
  ['cidr', `${IPV4}/${IPV4_PREFIX}`],
  ['cidrv4', `${IPV4}/${IPV4_PREFIX}`],
  ['cidrv6', `(?:${ipv6()})/${IPV6_PREFIX}`],
  ['ulid', '[0-7][0-9A-HJKMNP-TV-Z]{25}'],
  ['cuid2', '[a-z][0-9a-z]{1,31}'],
  ['e164', '\\+[1-9][0-9]{6,14}'],
  ['mac', `${HEX}{2}(?::${HEX}{2}){5}`],
  ['semver', SEMVER],
]);

const CLOCK = '[0-9:.]+(?:[Zz]|[+-][0-9:]+)?';
const IN_BASE64 = '[A-Za-z0-9+/_-]';
const ANY_BASE64 = `(?:${IN_BASE64}{4})*(?:${IN_BASE64}{2}(?:==)?|${IN_BASE64}{3}=?)?`;
/** Formats and encodings that are not generated in full. Validators may accept these texts. */
const WIDER: ReadonlyMap<string, string> = new Map([
  ['time', CLOCK],
  ['date-time', `[0-9-]+[Tt\\s]${CLOCK}`],
  ['duration', 'P[0-9T][0-9A-Z.,]*'],
  ['email', '[^]*@[^]*'],
  ['hostname', `(?:${LABEL}\\.)*${LABEL}\\.?`],
  ['uuid', `(?:urn:uuid:)?${uuid(HEX, HEX)}`],
  ...['uri', 'url', 'iri'].map((name) => [name, '[A-Za-z][A-Za-z0-9+.-]*:[^]*'] as const),
  ...['byte', 'base64', 'base64url'].map((name) => [name, ANY_BASE64] as const),
  ...['regex', 'iri-reference', 'idn-hostname', 'idn-email', 'uri-reference', 'uri-template'].map(
    (name) => [name, '[^]*'] as const,
  ),
  ...['ulid', 'cuid2', 'e164', 'mac', 'base32', 'quoted-printable'].map((name) => [name, '[^]*'] as const),
]);

/** The values of `contentEncoding`: RFC 4648, and RFC 2045 without limits of lines. */
export const CONTENT_ENCODINGS: ReadonlyMap<string, string> = new Map([
  ['base16', `(?:${HEX}{2})*`],
  ['base32', BASE32],
  ['base64', BASE64],
  ['base64url', BASE64_URL],
  ['quoted-printable', '(?:[\\t !-<>-~]|=[0-9A-F]{2}|=?\\r\\n)*'],
  ['7bit', '[\\x00-\\x7f]*'],
]);

/** Encodings of any text. */
export const PLAIN_ENCODINGS: ReadonlySet<string> = new Set(['8bit', 'binary']);

/** A regular expression for all texts that may have a format or an encoding. */
export const widest = (name: string, formats: ReadonlyMap<string, string>): string | undefined =>
  formats.has(name) ? (WIDER.get(name) ?? formats.get(name)) : undefined;

/** A pattern for all texts but these. */
export function noneOf(texts: readonly string[]): string {
  const escaped = texts.map((text) =>
    Array.from(text, (char) =>
      /[A-Za-z0-9]/.test(char) ? char : `\\u{${char.codePointAt(0)!.toString(16)}}`,
    ).join(''),
  );
  return `^(?!(?:${escaped.join('|')})$)`;
}
