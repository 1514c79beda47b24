import ipaddr from 'ipaddr.js';
import { parse } from 'tldts';

/** Suffixes of the list whose names are resolved on the own network or not at all. */
const LOCAL_SUFFIXES = /(^|\.)(arpa|onion)$/;

/**
 * Returns why events must not be sent to an address; null if they may. A public name may still resolve to a private address:
 * `PUBLIC_NETWORK` refuses that when it connects.
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
  const isPublic = ipaddr.isValid(host) ? isPublicAddress(host) : isPublicName(host);
  return isPublic
    ? null
    : 'expected a public name or address: private, local and reserved ones are not allowed.';
}

/** Returns whether a name is below a public suffix of ICANN's part of the list. A name with an empty label is none. */
function isPublicName(host: string): boolean {
  const { domain, isIcann, publicSuffix } = parse(host);
  return (
    !host.endsWith('.') && domain !== null && isIcann === true && !LOCAL_SUFFIXES.test(publicSuffix ?? '')
  );
}

/** IPv6 addresses that begin with zeros hold IPv4 addresses in a form that is not used any more. */
function isPublicAddress(host: string): boolean {
  const address = ipaddr.process(host);
  return address.range() === 'unicast' && (address.kind() === 'ipv4' || !host.startsWith('::'));
}
