import ipaddr from 'ipaddr.js';

/** Names that resolve to private addresses by definition. */
const PRIVATE_NAMES = /(^|\.)(localhost|local|internal|lan|home\.arpa)$/;

/**
 * Returns why events must not be sent to an address; null if they may. The platform resolves names, and its network does
 * not reach private addresses.
 * @param local allows plain HTTP and private addresses, for development
 */
export function targetProblem(text: string, local: boolean): string | null {
  const url = URL.parse(text);
  if (url === null) return 'expected an absolute URL.';
  if (url.username !== '' || url.password !== '') return 'it must not contain a user or password.';
  if (local && (url.protocol === 'http:' || url.protocol === 'https:')) return null;
  if (url.protocol !== 'https:') return "expected an address that begins with 'https://'.";
  // The URL parser has written IPv4 addresses in their usual form, whatever form they came in.
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const isPublic = ipaddr.isValid(host)
    ? isPublicAddress(host)
    : !PRIVATE_NAMES.test(host) && host.includes('.');
  return isPublic ? null : 'private, local and reserved addresses are not allowed.';
}

/** IPv6 addresses that begin with zeros hold IPv4 addresses in a form that is not used any more. */
function isPublicAddress(host: string): boolean {
  const address = ipaddr.process(host);
  return address.range() === 'unicast' && (address.kind() === 'ipv4' || !host.startsWith('::'));
}
