import ipaddr from 'ipaddr.js';
import topLevelDomains from 'tlds' with { type: 'json' };

/** Names below `arpa` are resolved on the own network or not at all. */
const PUBLIC_DOMAINS = new Set(topLevelDomains.filter((domain) => domain !== 'arpa'));

/**
 * Returns why events must not be sent to an address; null if they may. A public name may still resolve to a
 * private address: `PUBLIC_NETWORK` refuses that when it connects.
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

/** Returns whether a name is below a public top-level domain. A name with an empty label is none. */
function isPublicName(host: string): boolean {
  const labels = host.split('.');
  return labels.length > 1 && !labels.includes('') && isPublicDomain(labels.at(-1)!);
}

function isPublicDomain(domain: string): boolean {
  if (!domain.startsWith('xn--')) return PUBLIC_DOMAINS.has(domain);
  // The list has international domains in their own script, and the URL parser has written the host in ASCII.
  return [...PUBLIC_DOMAINS].some((listed) => URL.parse(`https://${listed}/`)?.hostname === domain);
}

/** IPv6 addresses that begin with zeros hold IPv4 addresses in a form that is not used any more. */
function isPublicAddress(host: string): boolean {
  const address = ipaddr.process(host);
  return address.range() === 'unicast' && (address.kind() === 'ipv4' || !host.startsWith('::'));
}
