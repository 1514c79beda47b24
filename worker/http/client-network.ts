/**
 * Returns the network that an address is rate-limited by: the address itself for IPv4, the /64 prefix for IPv6. A customer
 * of a network has at least 2^64 IPv6 addresses.
 */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [front, back] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const left = front ?? [];
  const right = back ?? [];
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  const groups = [...left, ...zeros, ...right].slice(0, 4);
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':');
}
