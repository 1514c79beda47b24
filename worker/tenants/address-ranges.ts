import ipaddr from 'ipaddr.js';

/** Networks of IPv4 and IPv6. An IPv4 address inside of IPv6 counts as IPv4. */

type Range = readonly [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number];

const MAPPED_BITS = 96;

function rangeOf(text: string): Range {
  if (!text.includes('/')) {
    const address = ipaddr.process(text);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  }
  const [address, bits] = ipaddr.parseCIDR(text);
  const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= MAPPED_BITS;
  return isMapped ? [address.toIPv4Address(), bits - MAPPED_BITS] : [address, bits];
}

/** Whether all of a network, or an address, is in one of the ranges. What is no address is in none. */
export function isWithin(text: string, ranges: readonly string[]): boolean {
  if (!ipaddr.isValid(text) && !ipaddr.isValidCIDR(text)) return false;
  const [address, bits] = rangeOf(text);
  return ranges.some((range) => {
    const [outer, outerBits] = rangeOf(range);
    return outer.kind() === address.kind() && outerBits <= bits && address.match(outer, outerBits);
  });
}
